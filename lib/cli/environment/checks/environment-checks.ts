import { existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import { EC2Client } from '@aws-sdk/client-ec2';
import { IAMClient } from '@aws-sdk/client-iam';
import { REGIONS } from '../../../core/catalog/regions';
import { managedPolicyArn } from '../../../core/config/environment/company';
import { existingNetworkOf } from '../../../core/config/environment/network';
import type { EnvironmentSpec } from '../../../core/config/environment-file';
import { type Issue, issue } from '../../../core/config/issue';
import type { TemplateResources } from '../../../core/contracts/template-values';
import { existingNetworkIssues } from '../../../shared/aws/network/existing-network';
import { boundaryIssues, roleStatements, uncomparedBoundary } from '../../../shared/aws/roles/boundary';
import type { Check } from './account-checks';
import { accountOf, inspect, type ResourceCheck, storageChecks } from './storage-checks';

const TITLE = 'permissions boundary';
const PERMISSION = 'iam:GetPolicy, iam:GetPolicyVersion and iam:SimulateCustomPolicy';

/**
 * Checks whether the permissions boundary of an environment file denies actions that the roles of its template need. The template is that
 * of the last `cdk synth`, because only it contains the roles that the CDK adds.
 * @param file the environment file; a template older than it cannot be used
 */
async function boundaryCheck(environment: EnvironmentSpec, file: string): Promise<ResourceCheck[]> {
  const { name, region, iam } = environment;
  const boundary = iam.permissionsBoundary;
  if (boundary === undefined) return [];
  const stack = `Slipway-${name}-${region}`;
  const template = path.join('cdk.out', `${stack}.template.json`);
  const stale = staleness(template, file);
  if (stale !== undefined) {
    const check = { name: TITLE, verdict: 'unknown' as const, detail: stale };
    return [{ check, issues: [uncomparedBoundary(stale)] }];
  }
  const { partition = 'aws', domain: urlSuffix = 'amazonaws.com' } = REGIONS[region] ?? {};
  const account = await accountOf(environment);
  const place = { partition, account, region, urlSuffix, stack };
  const arn = managedPolicyArn(boundary, place);
  const { Resources } = JSON.parse(readFileSync(template, 'utf8')) as { Resources: TemplateResources };
  const statements = roleStatements(Resources, place);
  const client = new IAMClient({ region, maxAttempts: 8 });
  return [await inspect(TITLE, PERMISSION, arn, () => boundaryIssues(client, arn, statements, place))];
}

/** Why a template cannot be used to check an environment file; undefined if it can. */
function staleness(template: string, file: string): string | undefined {
  if (!existsSync(template)) return `no ${template}`;
  return statSync(template).mtimeMs < statSync(file).mtimeMs ? `a ${template} that is older than ${file}` : undefined;
}

/**
 * Checks what an environment file refers to in the account, and resources of the environment that the file no longer contains. The issues
 * include those of the checks.
 */
export async function environmentChecks(
  environment: EnvironmentSpec,
  specs: readonly EnvironmentSpec[],
  file: string,
): Promise<{ checks: Check[]; issues: Issue[] }> {
  const [network, ownStorage, boundary, orphaned] = await Promise.all([
    networkChecks(environment),
    storageChecks(environment),
    boundaryCheck(environment, file),
    orphanedStacks(specs),
  ]);
  const found = [...network, ...ownStorage, ...boundary];
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
