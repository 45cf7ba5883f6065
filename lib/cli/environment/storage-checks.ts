import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { type ExistingStorage, type StorageLook, storageLooks } from '../../aws/existing-storage';
import { REGIONS } from '../../catalog/regions';
import type { EnvironmentSpec } from '../../spec/environment-file';
import { hasErrors, type Issue } from '../../spec/issue';
import { teamKeysOf } from '../../spec/team-keys';
import { type Check, check, checkIssues } from './account-checks';

/** Buckets and key, made by a stack or not, by their names. */
export type StoragePlaces = Omit<ExistingStorage, 'partition' | 'urlSuffix'>;

/** What a look at a bucket or a key came to. */
export interface StorageCheck {
  check: Check;
  issues: Issue[];
}

const BUCKET_PERMISSION = 's3:ListBucket, s3:GetBucketPolicy and other reads of settings';
const TITLES = { data: 'data bucket', checkpoints: 'checkpoint bucket', key: 'key' } as const;

/** Existing buckets and the existing keys that an environment file names, with the caller's own rights. */
export async function storageChecks(environment: EnvironmentSpec): Promise<StorageCheck[]> {
  const { region, storage } = environment;
  const { buckets = {}, kmsKeyArn: keyArn, fsxLustre } = storage;
  const teamKeys = Object.fromEntries(Object.entries(teamKeysOf(environment.teams)).filter(([, key]) => key !== 'own'));
  const named = [keyArn, ...Object.values(buckets), ...Object.values(teamKeys)];
  if (named.every((name) => name === undefined)) return [];
  const account = environment.account ?? (await callerAccount(region));
  const made = `slipway-${environment.name}-${account}-${region}-data`;
  const dataRepository = keyArn && fsxLustre ? (buckets.data ?? made) : undefined;
  return checkStorage({ region, account, buckets, keyArn, teamKeys, dataRepository });
}

async function callerAccount(region: string): Promise<string> {
  const { Account = '' } = await new STSClient({ region, maxAttempts: 3 }).send(new GetCallerIdentityCommand({}));
  return Account;
}

/** Settings of buckets and keys, made by the stack or not. */
export async function checkStorage(places: StoragePlaces): Promise<StorageCheck[]> {
  const { region } = places;
  const { partition = 'aws', domain: urlSuffix = 'amazonaws.com' } = REGIONS[region] ?? {};
  const settings = { region, maxAttempts: 3 };
  const clients = { s3: new S3Client(settings), kms: new KMSClient(settings) };
  return Promise.all(storageLooks(clients, { ...places, partition, urlSuffix }).map(look));
}

/** What is found is an issue of its own; what could not be looked at is one of the check. */
async function look({ what, team, name, findIssues }: StorageLook): Promise<StorageCheck> {
  const permission = what === 'key' ? 'kms:DescribeKey and kms:GetKeyPolicy' : BUCKET_PERMISSION;
  let issues: Issue[] = [];
  const title = team === undefined ? TITLES[what] : `key of team ${team}`;
  const found = await check(title, `${permission} on ${name}`, async () => {
    issues = await findIssues();
    return name;
  });
  if (hasErrors(issues)) return { check: { ...found, verdict: 'failed' }, issues };
  return { check: found, issues: [...issues, ...checkIssues([found])] };
}
