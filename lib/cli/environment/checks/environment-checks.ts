import { existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { EC2Client } from '@aws-sdk/client-ec2';
import { IAMClient } from '@aws-sdk/client-iam';
import { REGIONS } from '../../../core/catalog/regions';
import { managedPolicyArn } from '../../../core/config/environment/company';
import { existingNetworkOf } from '../../../core/config/environment/network';
import type { EnvironmentSpec } from '../../../core/config/environment-file';
import { namePrefix } from '../../../core/contracts/names';
import { type BucketPurpose, bucketNameOf } from '../../../core/contracts/storage';
import type { TemplateResources } from '../../../core/contracts/template-values';
import { existingNetworkIssues } from '../../../shared/aws/network/existing-network';
import { boundaryIssues, roleStatements, uncomparedBoundary } from '../../../shared/aws/roles/boundary';
import { awsClient } from '../../aws-client';
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
  const client = awsClient(IAMClient, { region, maxAttempts: 8 });
  return [await inspect(TITLE, PERMISSION, arn, () => boundaryIssues(client, arn, statements, place))];
}

/** Why a template cannot be used to check an environment file; undefined if it can. */
function staleness(template: string, file: string): string | undefined {
  if (!existsSync(template)) return `no ${template}`;
  return statSync(template).mtimeMs < statSync(file).mtimeMs ? `a ${template} that is older than ${file}` : undefined;
}

/** Checks what an environment file refers to in the account. */
export async function environmentChecks(environment: EnvironmentSpec, file: string): Promise<ResourceCheck[]> {
  const found = await Promise.all([
    networkChecks(environment),
    storageChecks(environment),
    boundaryCheck(environment, file),
  ]);
  return found.flat();
}

const NETWORK_PERMISSIONS = [
  ...['Vpcs', 'VpcAttribute', 'DhcpOptions', 'Subnets', 'SecurityGroups', 'RouteTables', 'NatGateways', 'VpcEndpoints'],
];

async function networkChecks(environment: EnvironmentSpec): Promise<ResourceCheck[]> {
  const { name, region, network, storage } = environment;
  if (network.mode !== 'existing') return [];
  const account = await accountOf(environment);
  const existing = existingNetworkOf(environment, account);
  if (!existing) return [];
  const made = (purpose: BucketPurpose) => bucketNameOf({ prefix: namePrefix(name), account, region }, purpose);
  const { data = made('data'), checkpoints = made('checkpoints') } = storage.buckets ?? {};
  const { partition = 'aws' } = REGIONS[region] ?? {};
  const buckets = [data, checkpoints, made('artifacts')].map((bucket) => `arn:${partition}:s3:::${bucket}`);
  const ec2 = awsClient(EC2Client, { region, maxAttempts: 3 });
  const permissions = NETWORK_PERMISSIONS.map((what) => `ec2:Describe${what}`).join(', ');
  return [
    await inspect('existing network', permissions, existing.vpcId, () => existingNetworkIssues(ec2, existing, buckets)),
  ];
}
