import { findInstanceType } from '../../catalog/instances/instances';
import type { EnvironmentSpec } from '../environment-file';
import { mlflowServers } from './mlflow-servers';

/** EFA interfaces of one instance take up to five addresses (docs/facts/training-job.md 4.5). */
const ADDRESSES_PER_EFA_INSTANCE = 5;
const ADDRESSES_PER_INSTANCE = 2;

const hasEfa = (instanceType: string): boolean => (findInstanceType(instanceType)?.efaInterfaces ?? 0) > 0;

/** Addresses that instances of a type take in their subnet. */
export const addressesOf = (instanceType: string, instances: number): number =>
  instances * (hasEfa(instanceType) ? ADDRESSES_PER_EFA_INSTANCE : ADDRESSES_PER_INSTANCE);

/** A VPC of the account that the environment uses and does not make, and what jobs need of it. */
export interface ExistingNetwork {
  region: string;
  account: string;
  vpcId: string;
  subnetIds: string[];
  securityGroupIds: string[];
  /** Whether a type of `quotas.require` has EFA. */
  usesEfa: boolean;
  /** Addresses that the largest job of `quotas.require` takes in one subnet. */
  addresses: number;
  /** Services that jobs call beside S3, by the last part of their name, and the option that needs each. */
  services: { service: string; option: string }[];
}

/** What the options of an environment need of an existing VPC; undefined where it names none. */
export function existingNetworkOf(spec: EnvironmentSpec, account: string): ExistingNetwork | undefined {
  const { mode, existing } = spec.network;
  if (mode !== 'existing' || !existing) return undefined;
  const { require } = spec.quotas;
  const ofLargestJob = require.map(({ instanceType, count }) =>
    addressesOf(instanceType, Math.min(count, spec.guardrails.maxInstancesPerRun ?? count)),
  );
  const { vpcId, subnetIds, securityGroupIds } = existing;
  return {
    ...{ region: spec.region, account, vpcId, subnetIds, securityGroupIds },
    usesEfa: require.some(({ instanceType }) => hasEfa(instanceType)),
    addresses: Math.max(0, ...ofLargestJob),
    services: servicesOf(spec),
  };
}

/** Beside S3: what a container calls for an option of the environment. */
function servicesOf(spec: EnvironmentSpec): ExistingNetwork['services'] {
  const usesCodeArtifact = spec.network.packages === 'codeartifact';
  return [
    ...(usesCodeArtifact
      ? ['codeartifact.api', 'codeartifact.repositories'].map((service) => ({ service, option: 'network.packages' }))
      : []),
    ...(spec.guardrails.allowRemoteDebug ? [{ service: 'ssmmessages', option: 'guardrails.allowRemoteDebug' }] : []),
    ...(mlflowServers(spec.teams).length > 0 ? [{ service: 'experiments', option: 'teams.<team>.mlflow' }] : []),
  ];
}
