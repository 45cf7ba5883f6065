import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { existingBucketIssues } from '../../aws/existing-bucket';
import { existingKeyIssues } from '../../aws/existing-key';
import { REGIONS } from '../../catalog/regions';
import type { EnvironmentSpec } from '../../spec/environment-file';
import { hasErrors, type Issue } from '../../spec/issue';
import { type Check, check, checkIssues } from './account-checks';

/** Buckets and key, made by a stack or not, by their names. */
export interface StoragePlaces {
  region: string;
  account: string;
  buckets: { data?: string; checkpoints?: string };
  /** Key that the roles may use; undefined: one that the stack is still to make. */
  keyArn?: string;
  /** Bucket that a file system of the stack reads and writes with an existing key. */
  dataRepository?: string;
}

/** One look at a bucket or a key. */
export interface StorageLook {
  check: Check;
  issues: Issue[];
}

const BUCKET_PERMISSION = 's3:ListBucket, s3:GetBucketPolicy and other reads of settings';

/** Existing buckets and the existing key that an environment file names, with the caller's own rights. */
export async function storageChecks(environment: EnvironmentSpec): Promise<StorageLook[]> {
  const { region, storage } = environment;
  const { buckets = {}, kmsKeyArn: keyArn, fsxLustre } = storage;
  if (!keyArn && Object.values(buckets).every((name) => name === undefined)) return [];
  const account = environment.account ?? (await callerAccount(region));
  const made = `slipway-${environment.name}-${account}-${region}-data`;
  const dataRepository = keyArn && fsxLustre ? (buckets.data ?? made) : undefined;
  return lookAtStorage({ region, account, buckets, keyArn, dataRepository });
}

async function callerAccount(region: string): Promise<string> {
  const { Account = '' } = await new STSClient({ region, maxAttempts: 3 }).send(new GetCallerIdentityCommand({}));
  return Account;
}

/** Settings of buckets and key, made by the stack or not. */
export async function lookAtStorage(places: StoragePlaces): Promise<StorageLook[]> {
  const { region, account, buckets, keyArn, dataRepository } = places;
  const { partition = 'aws', domain: urlSuffix = 'amazonaws.com' } = REGIONS[region] ?? {};
  const settings = { region, maxAttempts: 3 };
  const s3 = new S3Client(settings);
  const place = { partition, region, account };
  const looks = (['data', 'checkpoints'] as const).flatMap((purpose) => {
    const name = buckets[purpose];
    if (name === undefined) return [];
    const title = purpose === 'data' ? 'data bucket' : 'checkpoint bucket';
    return [
      look(title, `${BUCKET_PERMISSION} on ${name}`, name, () =>
        existingBucketIssues(s3, { ...place, name, purpose, keyArn }),
      ),
    ];
  });
  if (keyArn) {
    const key = { ...place, arn: keyArn, urlSuffix, dataRepository };
    const find = () => existingKeyIssues(new KMSClient(settings), key);
    looks.push(look('key', `kms:DescribeKey and kms:GetKeyPolicy on ${keyArn}`, keyArn, find));
  }
  return Promise.all(looks);
}

/** What is found is an issue of its own; what could not be looked at is one of the check. */
async function look(
  title: string,
  permission: string,
  name: string,
  find: () => Promise<Issue[]>,
): Promise<StorageLook> {
  let issues: Issue[] = [];
  const found = await check(title, permission, async () => {
    issues = await find();
    return name;
  });
  if (hasErrors(issues)) return { check: { ...found, verdict: 'failed' }, issues };
  return { check: found, issues: [...issues, ...checkIssues([found])] };
}
