import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import { EC2Client } from '@aws-sdk/client-ec2';
import { REGIONS } from '../../../core/catalog/regions';
import { existingNetworkOf } from '../../../core/config/environment/existing-network';
import type { EnvironmentSpec } from '../../../core/config/environment-file';
import { type Issue, issue } from '../../../core/config/issue';
import { existingNetworkIssues } from '../../../shared/aws/network/existing-network';
import type { Check } from './account-checks';
import { boundaryCheck } from './boundary-check';
import { accountOf, inspect, type ResourceCheck } from './resource-check';
import { replicaCheck, storageChecks } from './storage-checks';

/**
 * Checks what an environment file refers to in the account, and resources of the environment that the file no longer contains. The issues
 * include those of the checks.
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
  const found = [...network, ...ownStorage, ...replica, ...boundary];
  return {
    checks: found.map(({ check }) => check),
    issues: [...found.flatMap(({ issues }) => issues), ...orphaned],
  };
}

const NETWORK_PERMISSIONS = ['Vpcs', 'Subnets', 'SecurityGroups', 'RouteTables', 'VpcEndpoints'];

async function networkChecks(environment: EnvironmentSpec): Promise<ResourceCheck[]> {
  const { region, network } = environment;
  if (network.mode !== 'existing') return [];
  const existing = existingNetworkOf(environment, await accountOf(environment));
  if (!existing) return [];
  const ec2 = new EC2Client({ region, maxAttempts: 3 });
  const permissions = NETWORK_PERMISSIONS.map((what) => `ec2:Describe${what}`).join(', ');
  return [await inspect('existing network', permissions, existing.vpcId, () => existingNetworkIssues(ec2, existing))];
}

/**
 * Stacks of the environment in regions that its file does not contain: a deploy does not change them, and they continue to cost money. A
 * region that cannot be read (not enabled, no permission) produces no issue.
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
      must: `must contain ${region} while stack Slipway-${first.name}-${region} exists`,
      got: specs.map((spec) => spec.region).join(', '),
      fix: `restore ${region}, or delete the stack: aws cloudformation delete-stack --stack-name Slipway-${first.name}-${region} --region ${region}`,
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
