import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { GetCallerIdentityCommand, type GetCallerIdentityCommandOutput, STSClient } from '@aws-sdk/client-sts';
import { REGIONS } from '../../../core/catalog/regions';
import { teamKeysOf } from '../../../core/config/descriptor';
import type { EnvironmentSpec } from '../../../core/config/environment-file';
import { hasErrors, type Issue, type IssueText, issue } from '../../../core/config/issue';
import { namePrefix } from '../../../core/contracts/names';
import { bucketNameOf } from '../../../core/contracts/storage';
import { type ExistingStorage, type StorageProbe, storageProbes } from '../../../shared/aws/existing-storage';
import { awsClient } from '../../aws-client';
import { type Check, check, checkIssues } from './account-checks';

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
export async function storageChecks(environment: EnvironmentSpec): Promise<ResourceCheck[]> {
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
