import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { DeleteObjectsCommand, ListObjectVersionsCommand, PutBucketPolicyCommand, S3Client } from '@aws-sdk/client-s3';
import type { CdkCustomResourceEvent, CdkCustomResourceResponse, Context } from 'aws-lambda';
import { emptyStorageSchema } from '../../core/contracts/custom-resources';
import { EMPTYING_SID } from '../../core/contracts/storage';
import { answerOrUndefined } from '../../shared/aws/answers';
import { bucketPolicy } from '../../shared/aws/policy-document';
import { clientSettings, s3Settings } from '../shared/clients';
import { parseProperties, pointingToLog, stackStatus } from '../shared/custom-resource';

const RESERVE_MS = 20_000;
/** Stack states in which the buckets are deleted, by the configured policy. */
const EMPTIES: Readonly<Record<'rollback' | 'always', readonly string[]>> = {
  rollback: ['ROLLBACK_IN_PROGRESS'],
  always: ['ROLLBACK_IN_PROGRESS', 'DELETE_IN_PROGRESS'],
};

/**
 * Empties the buckets of a stack before CloudFormation deletes them, because it cannot delete a bucket that contains objects.
 *
 * Create and update do nothing. Delete reads the state of the stack: retained buckets are emptied only while the creation of the stack is
 * rolled back, when they contain only what this creation wrote; nothing is emptied because the resource was removed from a template. Writes are denied first, so that no access log arrives after the last deletion. Deleting everything may take several
 * calls: if the time runs out the call fails, and the next deletion continues.
 */
export async function onEvent(
  deps: EmptyStorageDeps,
  event: CdkCustomResourceEvent,
): Promise<CdkCustomResourceResponse> {
  const { bucketNames, when } = parseProperties(emptyStorageSchema, event);
  const PhysicalResourceId = `empty-storage-${bucketNames[0]}`;
  if (event.RequestType !== 'Delete') return { PhysicalResourceId };
  const status = await stackStatus(deps.cloudFormation, event.StackId);
  if (!EMPTIES[when].includes(status)) return { PhysicalResourceId: event.PhysicalResourceId };
  for (const bucket of bucketNames) if (await closeToWrites(deps, bucket)) await emptyBucket(deps, bucket);
  return { PhysicalResourceId: event.PhysicalResourceId };
}

/** Denies every write to the bucket; false when the bucket does not exist (any more). */
async function closeToWrites({ s3, partition }: EmptyStorageDeps, Bucket: string): Promise<boolean> {
  const closed = {
    Sid: EMPTYING_SID,
    Effect: 'Deny',
    Principal: '*',
    Action: 's3:PutObject',
    Resource: `arn:${partition}:s3:::${Bucket}/*`,
  };
  const close = async () => {
    const policy = await bucketPolicy(s3, Bucket);
    const others = policy.Statement.filter(({ Sid }) => Sid !== closed.Sid);
    const Policy = JSON.stringify({ ...policy, Statement: [...others, closed] });
    await s3.send(new PutBucketPolicyCommand({ Bucket, Policy }));
    return true;
  };
  return (await answerOrUndefined(close(), 'NoSuchBucket')) ?? false;
}

/** Deletes every version and every delete marker, one page at a time. */
async function emptyBucket({ s3, remainingMs }: EmptyStorageDeps, Bucket: string): Promise<void> {
  for (;;) {
    const { Versions = [], DeleteMarkers = [] } = await s3.send(new ListObjectVersionsCommand({ Bucket }));
    const Objects = [...Versions, ...DeleteMarkers].map(({ Key, VersionId }) => ({ Key, VersionId }));
    if (Objects.length === 0) return;
    if (remainingMs() < RESERVE_MS)
      throw new Error(
        `${Bucket}: must be empty before it is deleted, and holds more than was deleted in time; delete the stack again`,
      );
    const { Errors = [] } = await s3.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }));
    const [first] = Errors;
    if (first)
      throw new Error(`${Bucket}: ${Errors.length} objects could not be deleted, first ${first.Key}: ${first.Message}`);
  }
}

type EmptyStorageDeps = ReturnType<typeof depsOf>;
const depsOf = (context: Context) => ({
  cloudFormation: new CloudFormationClient(clientSettings),
  s3: new S3Client(s3Settings(process.env)),
  partition: context.invokedFunctionArn.split(':')[1] ?? 'aws',
  remainingMs: () => context.getRemainingTimeInMillis(),
});

export const handler = pointingToLog((event: CdkCustomResourceEvent, context: Context) =>
  onEvent(depsOf(context), event),
);
