import { GetRoleCommand, type IAMClient } from '@aws-sdk/client-iam';
import { DescribeKeyCommand, type KMSClient } from '@aws-sdk/client-kms';
import {
  GetBucketReplicationCommand,
  GetBucketVersioningCommand,
  type ReplicationConfiguration,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { type Issue, issue } from '../spec/issue';
import { answerOrUndefined } from './answer-or-undefined';
import type { SeenCopy } from './newest-copy';
import { toldRegion } from './told-region';

/** Where checkpoints are copied to. */
export interface ReplicaTarget {
  /** Region that the bucket must be in. */
  region: string;
  /** Account that must own it. */
  account: string;
  bucket: string;
  keyArn: string;
  /** Whether the same deploy makes the bucket: then its absence is a warning. @default false */
  mayFollow?: boolean;
  /** Role that copies, of a deployed rule. @default - not known */
  roleArn?: string;
}

/** Result for a resource that this account cannot read: unknown. */
export const UNREAD_REPLICA = 'preflight/replication-unread';
const unread = (must: string, got: string, fix: string) => issue(UNREAD_REPLICA, 'warning', PATH, { must, got, fix });
/** What the account of the copies must allow: https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-walkthrough-2.html, 2026-11-23. */
const BUCKET_RIGHTS = 's3:ReplicateObject, s3:ReplicateDelete and s3:ReplicateTags';
const KEY_RIGHTS = 'kms:Encrypt and kms:GenerateDataKey';

const PATH = 'storage.replicateCheckpoints';
const error = (must: string, got: string, fix: string) =>
  issue('preflight/replication', 'error', PATH, { must, got, fix });

/**
 * What S3 replication needs of the bucket and the key of the copies, and does not find. It takes the rule all the same, and each object then has
 * the status FAILED.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-requirements.html,
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-failure-codes.html, 2026-11-23.
 * @param clients of the region of the copies
 * @throws when a setting may not be read
 */
export async function replicaTargetIssues(
  clients: { s3: S3Client; kms: KMSClient },
  target: ReplicaTarget,
): Promise<Issue[]> {
  const [ofBucket, ofKey] = await Promise.all([bucketIssues(clients.s3, target), keyIssues(clients.kms, target)]);
  return [...ofBucket, ...ofKey];
}

/** S3 answers a call for a bucket of another region with status 301 and the region in a header, and one for a foreign bucket with 403. */
async function bucketIssues(s3: S3Client, target: ReplicaTarget): Promise<Issue[]> {
  const { bucket: Bucket, region, account, mayFollow } = target;
  try {
    const { Status } = await s3.send(new GetBucketVersioningCommand({ Bucket, ExpectedBucketOwner: account }));
    if (Status === 'Enabled') return [];
    const run = `run aws s3api put-bucket-versioning --bucket ${Bucket} --region ${region} --versioning-configuration Status=Enabled`;
    return [error('the bucket of the copies must be versioned', `${Bucket} ${Status ?? 'without versions'}`, run)];
  } catch (cause) {
    if (!(cause instanceof S3ServiceException)) throw cause;
    if (cause.name === 'NoSuchBucket') {
      const fix = `deploy the environment in ${region} first, or create the bucket`;
      const absent = error('must copy to a bucket that exists', `no bucket ${Bucket}`, fix);
      return [mayFollow ? { ...absent, level: 'warning' } : absent];
    }
    const found = toldRegion(cause);
    if (found === region && isForbidden(cause)) return [unreadBucket(target)];
    if (found === undefined || found === region) throw cause;
    return [error(`the bucket of the copies must be in ${region}`, `${Bucket} in ${found}`, 'name one of that region')];
  }
}

const isForbidden = (cause: S3ServiceException): boolean =>
  cause.name === 'AccessDenied' || cause.$metadata.httpStatusCode === 403;

const roleOf = ({ roleArn }: ReplicaTarget): string => roleArn ?? 'the role of the rule';

/** S3 says the region of a bucket beside a refusal, and nothing else of one that belongs to another account. */
function unreadBucket(target: ReplicaTarget): Issue {
  const { bucket, region, account } = target;
  const commands = ['get-bucket-versioning', 'get-bucket-policy'].map(
    (name) => `aws s3api ${name} --bucket ${bucket} --region ${region}`,
  );
  return unread(
    `the bucket of the copies must be of account ${account} and readable for you to be checked`,
    `403 for ${bucket} in ${region}`,
    `run in its account: ${commands.join(' and ')}; versions must be Enabled, and the policy must allow ${roleOf(target)} ${BUCKET_RIGHTS} on ${bucket}/runs/*`,
  );
}

async function keyIssues(kms: KMSClient, target: ReplicaTarget): Promise<Issue[]> {
  const { keyArn: KeyId } = target;
  const [, , , region, owner] = KeyId.split(':');
  const asked = answerOrUndefined(kms.send(new DescribeKeyCommand({ KeyId })), 'NotFoundException');
  const found = await asked.catch((cause: Error) => {
    if (owner === target.account || cause.name !== 'AccessDeniedException') throw cause;
    return 'unread' as const;
  });
  if (found === 'unread')
    return [
      unread(
        'the key of the copies must be readable to be checked',
        `a key of account ${owner}, which may not be described`,
        `run there: aws kms get-key-policy --policy-name default --region ${region} --key-id ${KeyId.split('/').at(-1)}; it must allow ${roleOf(target)} ${KEY_RIGHTS}`,
      ),
    ];
  const state = found?.KeyMetadata?.KeyState;
  if (state === 'Enabled') return [];
  const id = KeyId.split('/').at(-1);
  const got = found ? `${id}, ${state}` : `no key ${id}`;
  return [
    error('the key of the copies must be enabled', got, 'enable it, or name the key of the environment in that region'),
  ];
}

/** The rule of a checkpoint bucket as S3 holds it; undefined when it has none. @throws when it may not be read */
export async function readReplication(
  s3: S3Client,
  { bucket, account }: { bucket: string; account: string },
): Promise<ReplicationConfiguration | undefined> {
  const read = s3.send(new GetBucketReplicationCommand({ Bucket: bucket, ExpectedBucketOwner: account }));
  return (await answerOrUndefined(read, 'ReplicationConfigurationNotFoundError'))?.ReplicationConfiguration;
}

/** The place that a rule copies to, by the names that it holds; the region is that of the key. Undefined where it names no key. */
export function replicaTargetOf(rule: ReplicationConfiguration, account: string): ReplicaTarget | undefined {
  const { Bucket = '', EncryptionConfiguration } = rule.Rules?.[0]?.Destination ?? {};
  const keyArn = EncryptionConfiguration?.ReplicaKmsKeyID ?? '';
  const region = keyArn.split(':')[3];
  return region ? { region, account, bucket: Bucket.split(':::')[1] ?? '', keyArn, roleArn: rule.Role } : undefined;
}

/** A copy that failed is wrong, whatever else may be read. */
export const failedCopyIssues = (copy: SeenCopy | undefined): Issue[] =>
  copy?.status === 'FAILED'
    ? [
        error(
          'new checkpoints must be copied',
          `ReplicationStatus FAILED of ${copy.key}`,
          `the account of the copies must allow the role of the rule ${BUCKET_RIGHTS} on the bucket and ${KEY_RIGHTS} on the key`,
        ),
      ]
    : [];

/** What is wrong with a rule itself: switched off, or with a role that is gone. @throws when the role may not be read */
export async function replicationRuleIssues(iam: IAMClient, rule: ReplicationConfiguration): Promise<Issue[]> {
  const off = (rule.Rules ?? []).filter(({ Status }) => Status !== 'Enabled').map(({ ID }) => ID);
  const RoleName = rule.Role?.split('/').at(-1) ?? '';
  const role = await answerOrUndefined(iam.send(new GetRoleCommand({ RoleName })), 'NoSuchEntityException');
  return [
    ...(off.length > 0 ? [error('the rule must be enabled', `${off.join(', ')} switched off`, 'deploy again')] : []),
    ...(role ? [] : [error('the role of the rule must exist', `no role ${RoleName}`, 'deploy again')]),
  ];
}
