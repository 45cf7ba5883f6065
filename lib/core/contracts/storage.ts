/** Statement of a bucket's policy that denies writes while the bucket is emptied. */
export const EMPTYING_SID = 'SlipwayEmptying';

/**
 * Tag on objects of checkpoints that were never committed. Reconcile sets it when a run ends; the lifecycle rule of the checkpoint bucket
 * filters on it, so no other objects expire.
 */
export const LEFTOVER_TAG = { key: 'slipway', value: 'leftover' } as const;

/** Name of that lifecycle rule. */
export const LEFTOVER_RULE = 'leftovers';

/** Content of a bucket, the suffix of its name. */
export type BucketPurpose = 'data' | 'checkpoints' | 'artifacts' | 'access-logs';

/** Name of the object that marks a checkpoint as complete; it is written last (docs/reference/runtime.md). */
export const CHECKPOINT_MARKER = 'COMMITTED.json';

/** Name of the heartbeat of a run, beside its checkpoints. */
export const HEARTBEAT_OBJECT = 'heartbeat.json';

/** Key of the page of a team in the artifact bucket. Only reconcile writes it; no job may read it. */
export const teamPageKey = (team: string): string => `teams/${team}/page/index.html`;

/** Days for which S3 keeps versions that were deleted or overwritten, in whole days that end at midnight. */
export const versionDays = (purpose: BucketPurpose): number => (purpose === 'checkpoints' ? 1 : 7);

/**
 * Name of a bucket that the stack of an environment creates. Values may be CDK tokens.
 * @param place its prefix is `slipway-<environment>`
 */
export const bucketNameOf = (
  place: { prefix: string; account: string; region: string },
  purpose: BucketPurpose,
): string => `${place.prefix}-${place.account}-${place.region}-${purpose}`;

/** Key and bucket of an FSx for Lustre file system. Values may be CDK tokens. */
interface DataRepositoryKey {
  partition: string;
  account: string;
  region: string;
  /** Domain of the services of the partition, `amazonaws.com`. */
  urlSuffix: string;
  bucketName: string;
}

/**
 * Key policy statements for a data repository. The service-linked role of a file system can access objects that are encrypted with a
 * customer managed key only if the key policy allows it; the role is named after the file system, which does not exist yet. With S3 Bucket
 * Keys, the encryption context is the bucket ARN.
 * https://docs.aws.amazon.com/fsx/latest/LustreGuide/s3-server-side-encryption-support.html, 2026-11-22.
 */
export function dataRepositoryKeyStatements(key: DataRepositoryKey): Record<string, unknown>[] {
  const { partition, account, region, urlSuffix, bucketName } = key;
  const roles = 'role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-*';
  const bucket = `arn:${partition}:s3:::${bucketName}`;
  const statement = (Sid: string, Action: string | string[], context?: Record<string, unknown>) => ({
    Sid,
    Effect: 'Allow',
    Principal: { AWS: '*' },
    Action,
    Resource: '*',
    Condition: {
      StringEquals: { 'kms:CallerAccount': account, 'kms:ViaService': `s3.${region}.${urlSuffix}` },
      ArnLike: { 'aws:PrincipalArn': `arn:${partition}:iam::${account}:${roles}` },
      ...context,
    },
  });
  const uses = ['kms:Encrypt', 'kms:Decrypt', 'kms:ReEncrypt*', 'kms:GenerateDataKey*'];
  return [
    statement('LustreDataRepository', uses, {
      StringLike: { 'kms:EncryptionContext:aws:s3:arn': [bucket, `${bucket}/*`] },
    }),
    // DescribeKey has no encryption context.
    statement('LustreDataRepositoryKey', 'kms:DescribeKey'),
  ];
}

/**
 * The run table: one DynamoDB table per environment and region. Only control and reconcile write to it, always with condition expressions, and the guards the item that closes the environment.
 *
 * | runId | item | content |
 * |---|---|---|
 * | run id | `RUN` | the run: requested state, budgets, current attempt, `version` (optimistic lock) |
 * | run id | `INTENT` | immutable input of the run: resolved spec, code, driver and image |
 * | run id | `ATTEMPT#0001` | one attempt, as last observed |
 * | run id | `EVENT#2026-11-21T12:00:00.000Z#0042` | one line of the timeline, with its evidence |
 * | `REQUEST#<team>#<client request id>` | `REQUEST` | the run id created for this request, for repeated calls of `start` |
 * | `MONTH#<team>` | `2026-11` | what is booked for the runs of the team in that month, USD: added to by each write that books a cost |
 * | `QUEUE` | `QUEUE` | past usage of the teams, and the queue shares of the last pass |
 * | `UNREADABLE` | `UNREADABLE` | the items that cannot be read, of which a notice was sent |
 * | `PAGES` | `PAGES` | the digest of the page that was last written, by team |
 * | `GPUS` | `<UUID>#<team>` | that a job of the team has found this GPU, or its host, broken; expires after four weeks |
 * | `CLOSED` | `CLOSED` | whether a deletion or update of the stack is in progress that affects runs: control then rejects starts and resumes |
 */
export const RUN_TABLE = {
  partitionKey: 'runId',
  sortKey: 'item',
  /**
   * DynamoDB deletes items some time after this time (epoch seconds). The items of a run have it while the run is over, and lose it when the
   * run is resumed. Without it: RUN, INTENT and REQUEST of a registered run (CloudFormation repeats its request when it rolls an update back,
   * possibly years later) and of a run that an earlier version started.
   */
  expiresAt: 'expiresAt',
  /**
   * Boolean attribute of an item that remains in the index of active runs only until the cost of its warm pool is recorded: it does not
   * prevent the deletion of the stack.
   */
  poolOnly: 'poolOnly',
  /** Boolean attribute of the item `CLOSED`. */
  isClosed: 'isClosed',
  /** Number attribute of an item of `monthKey`. */
  monthUsd: 'usd',
} as const;

/**
 * Runs that have not ended, and runs with outstanding work: a notice to publish, or the cost of a warm pool to record. Only their RUN items
 * have the partition key, whose value is always the same; it is removed when no work is left. Projection: ALL.
 */
export const ACTIVE_INDEX = { name: 'active-runs', partitionKey: 'active', sortKey: 'runId', value: 'active' } as const;

/** All runs of a team, newest last: only RUN items have these keys. Projection: ALL. */
export const TEAM_INDEX = { name: 'team-runs', partitionKey: 'team', sortKey: 'createdAt' } as const;

/** Sort keys of items, which is also the partition key of items of the environment: run ids are lower case. */
export const ITEM = {
  run: 'RUN',
  intent: 'INTENT',
  request: 'REQUEST',
  queue: 'QUEUE',
  unreadable: 'UNREADABLE',
  pages: 'PAGES',
  gpus: 'GPUS',
  closed: 'CLOSED',
  /** Prefixes. */
  attempts: 'ATTEMPT#',
  events: 'EVENT#',
} as const;

/** Sort key of an attempt; four digits keep the order. */
export const attemptItem = (attempt: number): string => `${ITEM.attempts}${String(attempt).padStart(4, '0')}`;

/** Sorts by time; `sequence` (the version of the run, then the position within that write) distinguishes lines with the same time. */
export const eventItem = (at: string, version: number, place: number): string =>
  `${ITEM.events}${at}#${String(version).padStart(6, '0')}.${String(place).padStart(2, '0')}`;

/** Partition key of a client's request. */
export const requestKey = (team: string, clientRequestId: string): string => `REQUEST#${team}#${clientRequestId}`;

/** Partition key of the monthly spend of a team, USD; its sort key is the month, `2026-11`. */
export const monthKey = (team: string): string => `MONTH#${team}`;
