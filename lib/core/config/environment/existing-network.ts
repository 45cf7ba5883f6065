import { findInstanceType } from '../../catalog/instances/instances';
import type { EnvironmentSpec } from '../environment-file';
import { mlflowServers } from './mlflow-servers';

/** EFA interfaces of one instance use up to five addresses (docs/facts/training-job.md 4.5). */
const ADDRESSES_PER_EFA_INSTANCE = 5;
const ADDRESSES_PER_INSTANCE = 2;

const hasEfa = (instanceType: string): boolean => (findInstanceType(instanceType)?.efaInterfaces ?? 0) > 0;

/** Number of addresses that instances of a type use in their subnet. */
export const addressesOf = (instanceType: string, instances: number): number =>
  instances * (hasEfa(instanceType) ? ADDRESSES_PER_EFA_INSTANCE : ADDRESSES_PER_INSTANCE);

/** An existing VPC that the environment uses, and the requirements of jobs. */
export interface ExistingNetwork {
  region: string;
  account: string;
  vpcId: string;
  subnetIds: string[];
  securityGroupIds: string[];
  /** Whether a type in `quotas.require` has EFA. */
  usesEfa: boolean;
  /** Number of addresses that the largest job of `quotas.require` needs in one subnet. */
  addresses: number;
  /** Services besides S3 that jobs call, by the last part of their name, and the option that needs each. */
  services: { service: string; option: string }[];
}

/** Requirements of an environment's options for its existing VPC; undefined when it has none. */
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

/** Services besides S3 that a container calls because of an option of the environment, by the end of the names of their endpoints. */
export function servicesOf(spec: EnvironmentSpec): ExistingNetwork['services'] {
  const usesCodeArtifact = spec.network.packages === 'codeartifact';
  return [
    ...(usesCodeArtifact
      ? ['codeartifact.api', 'codeartifact.repositories'].map((service) => ({ service, option: 'network.packages' }))
      : []),
    ...(spec.guardrails.allowRemoteDebug ? [{ service: 'ssmmessages', option: 'guardrails.allowRemoteDebug' }] : []),
    ...(mlflowServers(spec.teams).length > 0 ? [{ service: 'experiments', option: 'teams.<team>.mlflow' }] : []),
  ];
}
