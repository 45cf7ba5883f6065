import { existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { EC2Client } from '@aws-sdk/client-ec2';
import { IAMClient } from '@aws-sdk/client-iam';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { GetCallerIdentityCommand, type GetCallerIdentityCommandOutput, STSClient } from '@aws-sdk/client-sts';
import { REGIONS } from '../../../core/catalog/regions';
import { teamKeysOf } from '../../../core/config/descriptor';
import { managedPolicyArn } from '../../../core/config/environment/company';
import { existingNetworkOf } from '../../../core/config/environment/network';
import type { EnvironmentSpec } from '../../../core/config/environment-file';
import { hasErrors, type Issue, type IssueText, issue } from '../../../core/config/issue';
import { namePrefix } from '../../../core/contracts/names';
import { type BucketPurpose, bucketNameOf } from '../../../core/contracts/storage';
import type { TemplateResources } from '../../../core/contracts/template-values';
import { type ExistingStorage, type StorageProbe, storageProbes } from '../../../shared/aws/existing-storage';
import { existingNetworkIssues } from '../../../shared/aws/network/existing-network';
import { boundaryIssues, roleStatements, uncomparedBoundary } from '../../../shared/aws/roles/boundary';
import { awsClient } from '../../aws-client';
import { type Check, check, checkIssues } from './account-checks';

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

const NETWORK_PERMISSIONS =
  'Vpcs VpcAttribute DhcpOptions Subnets SecurityGroups RouteTables NatGateways VpcEndpoints'.split(' ');

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

/** Result of checking a resource that an environment file refers to. */
export interface ResourceCheck {
  check: Check;
  issues: Issue[];
}

/** Problems found in the resource are separate issues; if it could not be read, the check has an issue. */
export async function inspect(
  title: string,
  permission: string,
  name: string,
  findIssues: () => Promise<Issue[]>,
): Promise<ResourceCheck> {
  let issues: Issue[] = [];
  const found = await check(title, permission, async () => {
    issues = await findIssues();
    return name;
  });
  if (hasErrors(issues)) return { check: { ...found, verdict: 'failed' }, issues };
  return { check: found, issues: [...issues, ...checkIssues([found])] };
}

const callers = new WeakMap<EnvironmentSpec, Promise<GetCallerIdentityCommandOutput>>();

/** Account of an environment: the one in its file, otherwise that of the caller's credentials, which is read once. */
export async function accountOf(environment: EnvironmentSpec): Promise<string> {
  if (environment.account !== undefined) return environment.account;
  const client = awsClient(STSClient, { region: environment.region, maxAttempts: 3 });
  const requested = callers.get(environment) ?? client.send(new GetCallerIdentityCommand({}));
  callers.set(environment, requested);
  return (await requested).Account ?? '';
}

/** One issue of a check of preflight. */
export const found = (name: string, level: Issue['level'], path: string, text: IssueText): Issue[] => [
  issue(`preflight/${name}`, level, path, text),
];

/** Buckets and key, created by a stack or existing, by their names. */
type StoragePlaces = Omit<ExistingStorage, 'partition' | 'urlSuffix'>;

const BUCKET_PERMISSION = 's3:ListBucket, s3:GetBucketPolicy and other reads of settings';
const TITLES = { data: 'data bucket', checkpoints: 'checkpoint bucket', key: 'key' } as const;

/** Checks existing buckets and keys that an environment file names, with the caller's own permissions. */
async function storageChecks(environment: EnvironmentSpec): Promise<ResourceCheck[]> {
  const { region, storage } = environment;
  const { buckets = {}, kmsKeyArn: keyArn, fsxLustre } = storage;
  const teamKeys = Object.fromEntries(Object.entries(teamKeysOf(environment.teams)).filter(([, key]) => key !== 'own'));
  const named = [keyArn, ...Object.values(buckets), ...Object.values(teamKeys)];
  if (named.every((name) => name === undefined)) return [];
  const account = await accountOf(environment);
  const made = bucketNameOf({ prefix: namePrefix(environment.name), account, region }, 'data');
  const dataRepository = keyArn && fsxLustre ? (buckets.data ?? made) : undefined;
  return checkStorage({ region, account, buckets, keyArn, teamKeys, dataRepository });
}

/** Checks the settings of buckets and keys, created by the stack or existing. */
export async function checkStorage(places: StoragePlaces): Promise<ResourceCheck[]> {
  const { region } = places;
  const { partition = 'aws', domain: urlSuffix = 'amazonaws.com' } = REGIONS[region] ?? {};
  const settings = { region, maxAttempts: 3 };
  const clients = { s3: awsClient(S3Client, settings), kms: awsClient(KMSClient, settings) };
  return Promise.all(storageProbes(clients, { ...places, partition, urlSuffix }).map(checkPlace));
}

function checkPlace({ what, team, name, findIssues }: StorageProbe): Promise<ResourceCheck> {
  const permission = what === 'key' ? 'kms:DescribeKey and kms:GetKeyPolicy' : BUCKET_PERMISSION;
  const title = team === undefined ? TITLES[what] : `key of team ${team}`;
  return inspect(title, `${permission} on ${name}`, name, findIssues);
}
