import { z } from 'zod';
import { hasEfa } from '../../catalog/instances/instances';
import type { EnvironmentSpec } from '../environment-file';
import { field, formed, option } from '../formats/field';
import { cidr, ec2Id, s3Prefix, unique, zoneId } from './formats';

/** ARNs of the MLflow tracking servers of all teams. MLflow apps, which a team may also name, have another address. */
export const mlflowServers = (teams: EnvironmentSpec['teams']): string[] => {
  const named = Object.values(teams).flatMap(({ mlflow = [] }) => mlflow);
  return [...new Set(named.filter((arn) => arn.includes(':mlflow-tracking-server/')))];
};

/** Teams up to which each has a security group: five resources of at most 500 in a template for a team. */
export const MAX_TEAMS_WITH_GROUPS = 16;

/** Name of the only team of an environment whose file names none. */
export const UNNAMED_TEAM = 'default';

/**
 * Names of the teams whose jobs are in a security group of their own: hosts reach each other on all ports within a group, as EFA requires.
 * Empty for an environment without teams, for a network that the stack does not create, and for too many teams.
 */
export function teamsWithGroups({ network: { mode }, teams }: Pick<EnvironmentSpec, 'network' | 'teams'>): string[] {
  const names = Object.keys(teams).filter((team, _, all) => team !== UNNAMED_TEAM || all.length > 1);
  return mode.startsWith('vpc-') && names.length <= MAX_TEAMS_WITH_GROUPS ? names : [];
}

/** Services besides S3 that scripts may call from a locked network; each needs an interface endpoint. */
const ENDPOINT_SERVICES = ['ecr', 'logs', 'monitoring', 'sts', 'kms', 'secretsmanager', 'ssm', 'sagemaker'] as const;
/** No region has more zones, and the VPC has address ranges for at most seven. */
const MAX_ZONES = 6;

export const network = z.strictObject({
  mode: option(
    z.enum(['vpc-locked', 'vpc-nat', 'existing', 'none']),
    'Network of the jobs: a VPC with endpoints and without internet access (vpc-locked), a VPC with a NAT gateway (vpc-nat), an existing VPC (existing), or no VPC (none).',
    { default: 'vpc-locked' },
  ),
  existing: option(
    z.strictObject({
      vpcId: field(ec2Id('vpc', 'a VPC id'), 'ID of the VPC.', { examples: ['vpc-0123456789abcdef0'] }),
      subnetIds: field(
        unique(z.array(ec2Id('subnet', 'a subnet id')).min(1).max(16)),
        'Private subnets in which jobs run.',
        { examples: [['subnet-0123456789abcdef0']] },
      ),
      securityGroupIds: field(
        unique(z.array(ec2Id('sg', 'a security group id')).min(1).max(5)),
        'Security groups of the jobs; EFA requires that a group allows all traffic from and to itself.',
        { examples: [['sg-0123456789abcdef0']] },
      ),
    }),
    'The existing VPC, with `mode: existing`. Default: none.',
    {
      examples: [
        {
          vpcId: 'vpc-0123456789abcdef0',
          subnetIds: ['subnet-0123456789abcdef0'],
          securityGroupIds: ['sg-0123456789abcdef0'],
        },
      ],
    },
  ),
  cidr: option(
    cidr,
    'CIDR block of the VPC that the stack creates, from /16 to /21; the jobs of each zone get one eighth of it. A change replaces the VPC.',
    { default: '10.64.0.0/16', examples: ['10.80.0.0/16'] },
  ),
  reserved: option(
    unique(z.array(cidr)),
    'CIDR blocks that `cidr` must not overlap, such as those of peered networks or of networks behind a transit gateway.',
    { default: [], examples: [['10.0.0.0/14', '192.168.0.0/16']] },
  ),
  availabilityZoneIds: option(
    z.union(
      [
        field(z.literal('all'), 'Every zone of the region.'),
        field(unique(z.array(zoneId).min(1).max(MAX_ZONES)), 'These zones only.'),
      ],
      'must be all, or a list of zone ids such as [usw2-az2]',
    ),
    'IDs of the Availability Zones with a subnet. Jobs can run only in these zones.',
    { default: 'all', examples: ['all', ['usw2-az2', 'usw2-az4']] },
  ),
  endpoints: option(
    unique(z.array(z.enum(ENDPOINT_SERVICES))),
    'Interface endpoints for AWS services that scripts call, with `mode: vpc-locked`. Default: none.',
    { examples: [['sts', 'secretsmanager']] },
  ),
  packages: option(
    z.enum(['none', 'wheels', 'codeartifact']),
    'Source of `code.requirements` without internet access: none, an S3 prefix (wheels), or CodeArtifact (codeartifact).',
    { default: 'none' },
  ),
  wheels: option(s3Prefix, 'S3 prefix with Python wheels, with `packages: wheels`. Default: none.', {
    examples: ['s3://company-packages/wheels/'],
  }),
  codeArtifact: option(
    z.strictObject({
      domain: field(
        formed(/^[a-z][a-z0-9-]{0,48}[a-z0-9]$/, 'must be the name of a CodeArtifact domain'),
        'CodeArtifact domain.',
        { examples: ['company'] },
      ),
      repository: field(
        formed(/^[A-Za-z0-9][\w.-]{1,99}$/, 'must be the name of a CodeArtifact repository'),
        'CodeArtifact repository.',
        { examples: ['python'] },
      ),
    }),
    'CodeArtifact repository of the account, with `packages: codeartifact`. Default: none.',
    { examples: [{ domain: 'company', repository: 'python' }] },
  ),
});

/** EFA interfaces of one instance use up to five addresses (docs/facts/training-job.md 4.5). */
const ADDRESSES_PER_EFA_INSTANCE = 5;
const ADDRESSES_PER_INSTANCE = 2;

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
