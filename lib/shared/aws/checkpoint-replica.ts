import { GetRoleCommand, type IAMClient } from '@aws-sdk/client-iam';
import { DescribeKeyCommand, type KMSClient } from '@aws-sdk/client-kms';
import {
  GetBucketReplicationCommand,
  GetBucketVersioningCommand,
  type ReplicationConfiguration,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { type Issue, issue } from '../../core/config/issue';
import { answerOrUndefined, bucketRegionIn } from './answers';
import type { SeenCopy } from './read-object';

export interface ReplicaTarget {
  region: string;
  account: string;
  bucket: string;
  keyArn: string;
  /** Whether the same deployment creates the bucket; its absence is then only a warning. @default false */
  mayFollow?: boolean;
  /** Replication role of a deployed rule. @default - not known */
  roleArn?: string;
}

/** Rule id of the warning about a resource that this account cannot read. */
export const UNREAD_REPLICA = 'preflight/replication-unread';
const unread = (must: string, got: string, fix: string) => issue(UNREAD_REPLICA, 'warning', PATH, { must, got, fix });
/** Permissions that the destination account must grant: https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-walkthrough-2.html, 2026-11-23 */
const BUCKET_RIGHTS = 's3:ReplicateObject, s3:ReplicateDelete and s3:ReplicateTags';
const KEY_RIGHTS = 'kms:Encrypt and kms:GenerateDataKey';

const PATH = 'storage.replicateCheckpoints';
const error = (must: string, got: string, fix: string) =>
  issue('preflight/replication', 'error', PATH, { must, got, fix });

/**
 * Checks the destination bucket and key against the requirements of S3 replication. S3 accepts a rule that violates them, but then each
 * object has the status FAILED.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-requirements.html,
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-failure-codes.html, 2026-11-23.
 * @param clients for the destination Region
 * @throws when access to a setting is denied
 */
export async function replicaTargetIssues(
  clients: { s3: S3Client; kms: KMSClient },
  target: ReplicaTarget,
): Promise<Issue[]> {
  const [ofBucket, ofKey] = await Promise.all([bucketIssues(clients.s3, target), keyIssues(clients.kms, target)]);
  return [...ofBucket, ...ofKey];
}

/**
 * S3 answers a call for a bucket in another Region with status 301 and the Region in a header, and a call for another account's bucket with
 * 403.
 */
async function bucketIssues(s3: S3Client, target: ReplicaTarget): Promise<Issue[]> {
  const { bucket: Bucket, region, account, mayFollow } = target;
  try {
    const { Status } = await s3.send(new GetBucketVersioningCommand({ Bucket, ExpectedBucketOwner: account }));
    if (Status === 'Enabled') return [];
    const run = `run aws s3api put-bucket-versioning --bucket ${Bucket} --region ${region} --versioning-configuration Status=Enabled`;
    return [error('the destination bucket must be versioned', `${Bucket} ${Status ?? 'without versioning'}`, run)];
  } catch (cause) {
    if (!(cause instanceof S3ServiceException)) throw cause;
    if (cause.name === 'NoSuchBucket') {
      const fix = `deploy the environment in ${region} first, or create the bucket`;
      const absent = error('must copy to a bucket that exists', `no bucket ${Bucket}`, fix);
      return [mayFollow ? { ...absent, level: 'warning' } : absent];
    }
    const found = bucketRegionIn(cause);
    if (found === region && isForbidden(cause)) return [unreadBucket(target)];
    if (found === undefined || found === region) throw cause;
    return [
      error(`the destination bucket must be in ${region}`, `${Bucket} in ${found}`, 'use a bucket in that region'),
    ];
  }
}

const isForbidden = (cause: S3ServiceException): boolean =>
  cause.name === 'AccessDenied' || cause.$metadata.httpStatusCode === 403;

const roleOf = ({ roleArn }: ReplicaTarget): string => roleArn ?? 'the role of the rule';

/** For a bucket of another account, S3 returns 403 and the Region of the bucket, but no settings. */
function unreadBucket(target: ReplicaTarget): Issue {
  const { bucket, region, account } = target;
  const commands = ['get-bucket-versioning', 'get-bucket-policy'].map(
    (name) => `aws s3api ${name} --bucket ${bucket} --region ${region}`,
  );
  return unread(
    `the destination bucket must belong to account ${account} and be readable to be checked`,
    `403 for ${bucket} in ${region}`,
    `in that account, run ${commands.join(' and ')}; versioning must be Enabled, and the policy must allow ${roleOf(target)} ${BUCKET_RIGHTS} on ${bucket}/runs/*`,
  );
}

async function keyIssues(kms: KMSClient, target: ReplicaTarget): Promise<Issue[]> {
  const { keyArn: KeyId } = target;
  const [, , , region, owner] = KeyId.split(':');
  const requested = answerOrUndefined(kms.send(new DescribeKeyCommand({ KeyId })), 'NotFoundException');
  const found = await requested.catch((cause: Error) => {
    if (owner === target.account || cause.name !== 'AccessDeniedException') throw cause;
    return 'unread' as const;
  });
  if (found === 'unread')
    return [
      unread(
        'the destination key must be readable to be checked',
        `a key of account ${owner}, which you are not allowed to describe`,
        `in that account, run aws kms get-key-policy --policy-name default --region ${region} --key-id ${KeyId.split('/').at(-1)}; it must allow ${roleOf(target)} ${KEY_RIGHTS}`,
      ),
    ];
  const state = found?.KeyMetadata?.KeyState;
  if (state === 'Enabled') return [];
  const id = KeyId.split('/').at(-1);
  const got = found ? `${id}, ${state}` : `no key ${id}`;
  return [
    error('the destination key must be enabled', got, 'enable it, or use the key of the environment in that region'),
  ];
}

/** Reads the replication configuration of a checkpoint bucket; undefined when it has none. @throws when access is denied */
export async function readReplication(
  s3: S3Client,
  { bucket, account }: { bucket: string; account: string },
): Promise<ReplicationConfiguration | undefined> {
  const read = s3.send(new GetBucketReplicationCommand({ Bucket: bucket, ExpectedBucketOwner: account }));
  return (await answerOrUndefined(read, 'ReplicationConfigurationNotFoundError'))?.ReplicationConfiguration;
}

/** The destination of a replication rule; its Region is that of the key. Undefined when the rule has no key. */
export function replicaTargetOf(rule: ReplicationConfiguration, account: string): ReplicaTarget | undefined {
  const { Bucket = '', EncryptionConfiguration } = rule.Rules?.[0]?.Destination ?? {};
  const keyArn = EncryptionConfiguration?.ReplicaKmsKeyID ?? '';
  const region = keyArn.split(':')[3];
  return region ? { region, account, bucket: Bucket.split(':::')[1] ?? '', keyArn, roleArn: rule.Role } : undefined;
}

/** Reports a failed copy as an error, even if other settings could not be read. */
export const failedCopyIssues = (copy: SeenCopy | undefined): Issue[] =>
  copy?.status === 'FAILED'
    ? [
        error(
          'new checkpoints must be copied',
          `ReplicationStatus FAILED of ${copy.key}`,
          `the destination account must allow the role of the rule ${BUCKET_RIGHTS} on the bucket and ${KEY_RIGHTS} on the key`,
        ),
      ]
    : [];

/** Problems of the rule itself: it is disabled, or its role no longer exists. @throws when the role cannot be read */
export async function replicationRuleIssues(iam: IAMClient, rule: ReplicationConfiguration): Promise<Issue[]> {
  const off = (rule.Rules ?? []).filter(({ Status }) => Status !== 'Enabled').map(({ ID }) => ID);
  const RoleName = rule.Role?.split('/').at(-1) ?? '';
  const role = await answerOrUndefined(iam.send(new GetRoleCommand({ RoleName })), 'NoSuchEntityException');
  return [
    ...(off.length > 0
      ? [error('the replication rule must be enabled', `${off.join(', ')} disabled`, 'deploy again')]
      : []),
    ...(role ? [] : [error('the role of the replication rule must exist', `no role ${RoleName}`, 'deploy again')]),
  ];
}
