import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import {
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  DescribeVpcsCommand,
  EC2Client,
} from '@aws-sdk/client-ec2';
import { REGIONS } from '../../catalog/regions';
import type { EnvironmentSpec } from '../../spec/environment-file';
import { type Issue, issue } from '../../spec/issue';
import { type Check, check, checkIssues, Unmet } from './account-checks';
import { boundaryCheck } from './boundary-check';
import { replicaCheck, storageChecks } from './storage-checks';

/**
 * What an environment file refers to in the account, and what the account has of it that the file no longer names. The issues hold those
 * of the checks.
 */
export async function environmentChecks(
  environment: EnvironmentSpec,
  specs: readonly EnvironmentSpec[],
  file: string,
): Promise<{ checks: Check[]; issues: Issue[] }> {
  const regions = specs.map(({ region }) => region);
  const [network, ownStorage, replica, boundary, orphaned] = await Promise.all([
    networkChecks(environment),
    storageChecks(environment),
    replicaCheck(environment, regions),
    boundaryCheck(environment, file),
    orphanedStacks(specs),
  ]);
  const others = [...ownStorage, ...replica, ...boundary];
  return {
    checks: [...network, ...others.map(({ check: found }) => found)],
    issues: [...checkIssues(network), ...others.flatMap(({ issues }) => issues), ...orphaned],
  };
}

async function networkChecks({ network, region }: EnvironmentSpec): Promise<Check[]> {
  const { existing } = network;
  if (network.mode !== 'existing' || !existing) return [];
  const ec2 = new EC2Client({ region, maxAttempts: 3 });
  const { vpcId, subnetIds, securityGroupIds } = existing;
  const ofVpc = (kind: string, found: { id?: string; vpc?: string }[]) => {
    const strangers = found.filter(({ vpc }) => vpc !== vpcId).map(({ id, vpc }) => `${id} is in ${vpc}`);
    if (strangers.length > 0) throw new Unmet(`every ${kind} must be in ${vpcId}: ${strangers.join(', ')}`);
    return found.map(({ id }) => id).join(', ');
  };
  return Promise.all([
    check('VPC', 'ec2:DescribeVpcs', async () => {
      const { Vpcs = [] } = await ec2.send(new DescribeVpcsCommand({ VpcIds: [vpcId] }));
      if (Vpcs.length === 0) throw new Unmet(`${vpcId} does not exist in ${region}`);
      return vpcId;
    }),
    check('subnets', 'ec2:DescribeSubnets', async () => {
      const { Subnets = [] } = await ec2.send(new DescribeSubnetsCommand({ SubnetIds: subnetIds }));
      return ofVpc(
        'subnet',
        Subnets.map((s) => ({ id: s.SubnetId, vpc: s.VpcId })),
      );
    }),
    check('security groups', 'ec2:DescribeSecurityGroups', async () => {
      const { SecurityGroups = [] } = await ec2.send(new DescribeSecurityGroupsCommand({ GroupIds: securityGroupIds }));
      return ofVpc(
        'security group',
        SecurityGroups.map((g) => ({ id: g.GroupId, vpc: g.VpcId })),
      );
    }),
  ]);
}

/**
 * Stacks of the environment in regions that its file does not name: a deploy leaves them as they are, and they go on costing money.
 * A region that cannot be asked (not enabled, no permission) says nothing.
 */
async function orphanedStacks(specs: readonly EnvironmentSpec[]): Promise<Issue[]> {
  const [first] = specs;
  if (!first) return [];
  const partition = REGIONS[first.region]?.partition;
  const others = Object.keys(REGIONS).filter(
    (region) => REGIONS[region]?.partition === partition && !specs.some((spec) => spec.region === region),
  );
  const found = await Promise.all(others.map(async (region) => ((await hasStack(first.name, region)) ? [region] : [])));
  return found.flat().map((region) =>
    issue('preflight/removed-region', 'warning', 'regions', {
      must: `must name ${region} while stack Slipway-${first.name}-${region} exists`,
      got: specs.map((spec) => spec.region).join(', '),
      fix: `put ${region} back, or destroy the stack: aws cloudformation delete-stack --stack-name Slipway-${first.name}-${region} --region ${region}`,
    }),
  );
}

async function hasStack(name: string, region: string): Promise<boolean> {
  const client = new CloudFormationClient({ region, maxAttempts: 2 });
  try {
    const { Stacks = [] } = await client.send(new DescribeStacksCommand({ StackName: `Slipway-${name}-${region}` }));
    return Stacks.some((stack) => stack.StackStatus !== 'DELETE_COMPLETE');
  } catch {
    return false;
  }
}
