import { DescribeTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DescribeRepositoriesCommand, ECRClient } from '@aws-sdk/client-ecr';
import { DescribeKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import {
  GetBucketLifecycleConfigurationCommand,
  HeadBucketCommand,
  type LifecycleRule,
  PutBucketLifecycleConfigurationCommand,
  PutBucketPolicyCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { type AdoptedBucket, adoptStorageSchema } from '../../core/contracts/custom-resources';
import { EMPTYING_SID, LEFTOVER_RULE, LEFTOVER_TAG } from '../../core/contracts/storage';
import { answerOrUndefined } from '../../shared/aws/answers';
import { bucketPolicy, canonicalStatement } from '../../shared/aws/policy-document';
import { clientSettings, s3Settings } from '../shared/clients';
import { acceptingRollback, entryPoint, whileItExists } from '../shared/custom-resource';

/**
 * Adopts the storage that an earlier stack left behind. Create and update check that all of it exists, and fail with a list of everything
 * that is missing; then they add the missing statements to the bucket policies and set the expiration of uncommitted checkpoints. Repeating
 * an event changes nothing. Delete does nothing: the adopted storage and its policies stay.
 */
export const onEvent = whileItExists(adoptStorageSchema, async (deps: AdoptStorageDeps, properties) => {
  const { buckets, keyArn, tableName, repositoryName } = properties;
  const checks = await Promise.all([
    ...buckets.map(({ name }) =>
      missing(`bucket ${name}`, () => deps.s3.send(new HeadBucketCommand({ Bucket: name }))),
    ),
    unusableKey(deps.kms, keyArn),
    tableName &&
      missing(`table ${tableName}`, () => deps.dynamo.send(new DescribeTableCommand({ TableName: tableName }))),
    repositoryName &&
      missing(`repository ${repositoryName}`, () =>
        deps.ecr.send(new DescribeRepositoriesCommand({ repositoryNames: [repositoryName] })),
      ),
  ]);
  const absent = checks.flatMap((found) => found || []);
  if (absent.length > 0)
    throw new Error(
      `storage.adopt: must find what an earlier stack left, got no ${absent.join(', no ')}; remove adopt, or restore it`,
    );
  for (const bucket of buckets) await restore(deps.s3, bucket);
  return { PhysicalResourceId: `adopted-${buckets[0]?.name}` };
});

const NOT_FOUND = [
  'NotFound',
  'NoSuchBucket',
  'ResourceNotFoundException',
  'RepositoryNotFoundException',
  'NotFoundException',
];

/** The name if the service does not find it; undefined if it does. */
async function missing(name: string, read: () => Promise<unknown>): Promise<string | undefined> {
  const found = await answerOrUndefined(
    read().then(() => true),
    ...NOT_FOUND,
  );
  return found ? undefined : name;
}

/** The key if the service does not find it, or if it is not enabled. */
async function unusableKey(kms: KMSClient, KeyId: string): Promise<string | undefined> {
  const found = await answerOrUndefined(kms.send(new DescribeKeyCommand({ KeyId })), ...NOT_FOUND);
  const { KeyState = 'Enabled' } = found?.KeyMetadata ?? {};
  if (!found) return `key ${KeyId}`;
  if (KeyState === 'Enabled') return undefined;
  return `key ${KeyId} that is enabled (it is ${KeyState}; aws kms cancel-key-deletion and enable-key restore it)`;
}

async function restore(s3: S3Client, bucket: AdoptedBucket): Promise<void> {
  await restorePolicy(s3, bucket);
  if (bucket.leftoverDays !== undefined) await restoreExpiration(s3, bucket.name, bucket.leftoverDays);
}

async function restorePolicy(s3: S3Client, { name, statements }: AdoptedBucket): Promise<void> {
  const policy = await bucketPolicy(s3, name);
  // The earlier stack may have begun to empty the bucket.
  const kept = policy.Statement.filter(({ Sid }) => Sid !== EMPTYING_SID);
  const there = kept.map(canonicalStatement);
  const added = statements.filter((statement) => !there.includes(canonicalStatement(statement)));
  if (added.length === 0 && kept.length === policy.Statement.length) return;
  const Policy = JSON.stringify({ ...policy, Statement: [...kept, ...added] });
  await s3.send(new PutBucketPolicyCommand({ Bucket: name, Policy }));
}

async function restoreExpiration(s3: S3Client, Bucket: string, Days: number): Promise<void> {
  const read = s3.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
  const rules = (await answerOrUndefined(read, 'NoSuchLifecycleConfiguration'))?.Rules ?? [];
  const leftovers: LifecycleRule = {
    ID: LEFTOVER_RULE,
    Status: 'Enabled',
    Filter: { Tag: { Key: LEFTOVER_TAG.key, Value: LEFTOVER_TAG.value } },
    Expiration: { Days },
  };
  const current = rules.find(({ ID }) => ID === LEFTOVER_RULE);
  if (current?.Expiration?.Days === Days) return;
  const Rules = [...rules.filter((rule) => rule !== current), leftovers];
  await s3.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration: { Rules } }));
}

type AdoptStorageDeps = ReturnType<typeof deps>;
const deps = () => ({
  s3: new S3Client(s3Settings(process.env)),
  dynamo: new DynamoDBClient(clientSettings),
  ecr: new ECRClient(clientSettings),
  kms: new KMSClient(clientSettings),
});

export const handler = entryPoint(deps, onEvent, acceptingRollback);
