import { Duration, Stack } from 'aws-cdk-lib';
import type * as kms from 'aws-cdk-lib/aws-kms';
import { Construct, type IConstruct, type IDependable } from 'constructs';
import {
  existingNetworkOf,
  mlflowServers,
  type ExistingNetwork as Network,
  teamsWithGroups,
} from '../../core/config/environment/network';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { EXISTING_NETWORK_TYPE } from '../../core/contracts/custom-resources';
import { namePrefix } from '../../core/contracts/names';
import { customResource } from '../functions/handler-resource';
import { TrainingNetwork } from './training-network';

/** The network of an environment file: created, existing, or none. */
export class EnvironmentNetwork extends Construct {
  /** Empty: jobs run without a VPC. */
  public readonly subnetIds: string[];
  /** Security groups of file systems, and of jobs of teams without their own. */
  public readonly securityGroupIds: string[];
  /** The security group of the jobs of each team that has its own. */
  public readonly teamGroupIds: Readonly<Record<string, string>>;
  /** Subnets with their zone ids; undefined when these are not known. */
  public readonly subnets?: { id: string; zoneId: string }[];

  /** The check of an existing network; undefined when the stack creates the network, or there is none. */
  public readonly check?: IDependable;

  private readonly zoneIds: readonly string[];
  private readonly made?: TrainingNetwork;

  /** @param operationsKey key of the flow logs */
  constructor(scope: Construct, id: string, spec: EnvironmentSpec, operationsKey?: kms.IKey) {
    super(scope, id);
    const { mode, availabilityZoneIds } = spec.network;
    this.zoneIds = availabilityZoneIds === 'all' ? [] : availabilityZoneIds;
    if (mode === 'vpc-locked' || mode === 'vpc-nat') this.made = this.make(spec, mode, operationsKey);
    const named = this.made ? undefined : existingNetworkOf(spec, Stack.of(this).account);
    if (named) this.check = checkExistingNetwork(this, 'Existing', named);
    const { subnetIds = [], securityGroupIds = [] } = this.made ?? named ?? {};
    this.subnetIds = subnetIds;
    this.securityGroupIds = securityGroupIds;
    this.teamGroupIds = this.made?.teamGroupIds ?? {};
    this.subnets = this.made?.subnets;
  }

  /** The subnet in a zone, if zones were given by id. */
  subnetOfZone(zoneId: string): string | undefined {
    return this.made?.subnetOfZone[zoneId]?.subnetId;
  }

  /** The VPC, subnet and security group that a file system in a zone uses. */
  partsIn(zoneId: string): IConstruct[] {
    const subnet = this.made?.subnetOfZone[zoneId];
    return this.made && subnet ? [this.made.vpc, subnet, this.made.securityGroup] : [];
  }

  private make(spec: EnvironmentSpec, mode: 'vpc-locked' | 'vpc-nat', encryptionKey?: kms.IKey): TrainingNetwork {
    const places = [...(spec.storage.external ?? []).map(({ s3 }) => s3), spec.network.wheels ?? ''].filter(Boolean);
    return new TrainingNetwork(this, 'Vpc', {
      prefix: namePrefix(spec.name),
      mode,
      cidr: spec.network.cidr,
      teams: teamsWithGroups(spec),
      availabilityZoneIds: this.zoneIds.length > 0 ? this.zoneIds : undefined,
      endpoints: spec.network.endpoints,
      retain: spec.storage.retain,
      encryptionKey,
      foreignBucketArns: places.map(
        (s3) => `arn:${Stack.of(this).partition}:s3:::${s3.replace(/^s3:\/\//, '').split('/')[0]}`,
      ),
      usesCodeArtifact: spec.network.packages === 'codeartifact',
      allowsRemoteDebug: spec.guardrails.allowRemoteDebug,
      mlflowServers: mlflowServers(spec.teams),
    });
  }
}

/**
 * The check of an existing VPC: ids, routes to S3 and to what its options need, rules of the security groups, free addresses. A custom
 * resource fails the deploy with everything that is missing, and checks again when one of the ids or needs has changed; `slipway preflight`
 * can check at any time.
 */
function checkExistingNetwork(scope: Construct, id: string, network: Network): Construct {
  const check = new Construct(scope, id);
  customResource(check, 'Check', {
    resourceType: EXISTING_NETWORK_TYPE,
    handler: 'existing-network',
    description: 'Checks the VPC that jobs run in',
    timeout: Duration.minutes(2),
    statements: [
      {
        sid: 'SeeExistingNetwork',
        actions: [
          'ec2:DescribeDhcpOptions',
          'ec2:DescribeNatGateways',
          'ec2:DescribeRouteTables',
          'ec2:DescribeSecurityGroups',
          'ec2:DescribeSubnets',
          'ec2:DescribeVpcEndpoints',
          'ec2:DescribeVpcs',
        ],
        resources: ['*'],
        wildcard: 'Describe actions of EC2 have no resource type.',
      },
      {
        sid: 'SeeVpcAttributes',
        actions: ['ec2:DescribeVpcAttribute'],
        resources: [Stack.of(scope).formatArn({ service: 'ec2', resource: 'vpc', resourceName: network.vpcId })],
      },
    ],
    serviceTimeout: Duration.minutes(4),
    properties: { network: JSON.stringify(network) },
  });
  return check;
}
