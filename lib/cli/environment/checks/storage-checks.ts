import { IAMClient } from '@aws-sdk/client-iam';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { GetCallerIdentityCommand, type GetCallerIdentityCommandOutput, STSClient } from '@aws-sdk/client-sts';
import { REGIONS } from '../../../core/catalog/regions';
import { teamKeysOf } from '../../../core/config/descriptor';
import type { EnvironmentSpec } from '../../../core/config/environment-file';
import { hasErrors, type Issue, type IssueText, issue } from '../../../core/config/issue';
import { bucketNameOf } from '../../../core/contracts/storage';
import {
  failedCopyIssues,
  type ReplicaTarget,
  readReplication,
  replicaTargetIssues,
  replicaTargetOf,
  replicationRuleIssues,
  UNREAD_REPLICA,
} from '../../../shared/aws/checkpoint-replica';
import { type ExistingStorage, type StorageProbe, storageProbes } from '../../../shared/aws/existing-storage';
import { newestCopy } from '../../../shared/aws/read-object';
import { undefinedWhenDenied } from '../../aws-errors';
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
  const unread = issues.filter(({ rule }) => rule === UNREAD_REPLICA).map(({ message }) => message);
  if (unread.length > 0) return { check: { ...found, verdict: 'unknown', detail: unread.join('; ') }, issues };
  return { check: found, issues: [...issues, ...checkIssues([found])] };
}

const callers = new WeakMap<EnvironmentSpec, Promise<GetCallerIdentityCommandOutput>>();

/** Account of an environment: the one in its file, otherwise that of the caller's credentials, which is read once. */
export async function accountOf(environment: EnvironmentSpec): Promise<string> {
  if (environment.account !== undefined) return environment.account;
  const client = new STSClient({ region: environment.region, maxAttempts: 3 });
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
  const made = bucketNameOf({ prefix: `slipway-${environment.name}`, account, region }, 'data');
  const dataRepository = keyArn && fsxLustre ? (buckets.data ?? made) : undefined;
  return checkStorage({ region, account, buckets, keyArn, teamKeys, dataRepository });
}

/** Checks the settings of buckets and keys, created by the stack or existing. */
export async function checkStorage(places: StoragePlaces): Promise<ResourceCheck[]> {
  const { region } = places;
  const { partition = 'aws', domain: urlSuffix = 'amazonaws.com' } = REGIONS[region] ?? {};
  const settings = { region, maxAttempts: 3 };
  const clients = { s3: new S3Client(settings), kms: new KMSClient(settings) };
  return Promise.all(storageProbes(clients, { ...places, partition, urlSuffix }).map(checkPlace));
}

/**
 * Checks the bucket and key to which an environment file replicates checkpoints. If the environment of the other region is in the same
 * file, its bucket may be created by the same deploy, so its absence is only a warning.
 */
export async function replicaCheck(environment: EnvironmentSpec, regions: readonly string[]): Promise<ResourceCheck[]> {
  const { name, storage } = environment;
  const to = storage.replicateCheckpoints;
  if (!to) return [];
  const account = await accountOf(environment);
  const bucket = to.bucket ?? bucketNameOf({ prefix: `slipway-${name}`, account, region: to.region }, 'checkpoints');
  const mayFollow = to.bucket === undefined && regions.includes(to.region);
  const target = { region: to.region, account, bucket, keyArn: to.kmsKeyArn, mayFollow };
  const permission = `${REPLICA_PERMISSION} on ${bucket} and its key`;
  return [await inspect(REPLICA_TITLE, permission, bucket, () => targetIssues(target))];
}

/**
 * Checks the replication rule of a deployed environment, its role, and its destination; undefined when the bucket has no rule.
 * @throws when the rule may not be read
 */
export async function deployedReplicaCheck(place: {
  region: string;
  account: string;
  bucket: string;
}): Promise<ResourceCheck | undefined> {
  const settings = { region: place.region, maxAttempts: 3 };
  const s3 = new S3Client(settings);
  const rule = await readReplication(s3, place);
  if (!rule) return undefined;
  const target = replicaTargetOf(rule, place.account);
  // Callers who may not read checkpoints get no information about copies.
  const copy = await newestCopy(s3, place).catch(undefinedWhenDenied);
  const found = await inspect(
    REPLICA_TITLE,
    `${REPLICA_PERMISSION} and iam:GetRole`,
    target?.bucket ?? place.bucket,
    async () => [
      ...failedCopyIssues(copy),
      ...(await replicationRuleIssues(new IAMClient(settings), rule)),
      ...(target ? await targetIssues(target) : []),
    ],
  );
  // A copy that has arrived is better evidence than reading its destination.
  if (found.check.verdict !== 'unknown' || copy?.status !== 'COMPLETED') return found;
  return { check: { ...found.check, verdict: 'ok', detail: `${copy.key} was copied` }, issues: [] };
}

const REPLICA_TITLE = 'copies of checkpoints';
const REPLICA_PERMISSION = 's3:GetBucketVersioning and kms:DescribeKey';

function targetIssues(target: ReplicaTarget): Promise<Issue[]> {
  const settings = { region: target.region, maxAttempts: 3 };
  return replicaTargetIssues({ s3: new S3Client(settings), kms: new KMSClient(settings) }, target);
}

function checkPlace({ what, team, name, findIssues }: StorageProbe): Promise<ResourceCheck> {
  const permission = what === 'key' ? 'kms:DescribeKey and kms:GetKeyPolicy' : BUCKET_PERMISSION;
  const title = team === undefined ? TITLES[what] : `key of team ${team}`;
  return inspect(title, `${permission} on ${name}`, name, findIssues);
}
