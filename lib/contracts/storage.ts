/**
 * Tag of an object that belongs to a checkpoint that was never committed. Set by reconcile when a run is over; the checkpoint
 * bucket's lifecycle rule filters on it, so that nothing else ever expires.
 */
export const LEFTOVER_TAG = { key: 'slipway', value: 'leftover' } as const;

/** Name of that lifecycle rule. */
export const LEFTOVER_RULE = 'leftovers';

/** What a bucket holds; its name ends with it. */
export type BucketPurpose = 'data' | 'checkpoints' | 'artifacts' | 'access-logs';

/**
 * Name of a bucket that the stack of an environment makes. Values may be tokens of the CDK.
 * @param place whose prefix is `slipway-<environment>`
 */
export const bucketNameOf = (
  place: { prefix: string; account: string; region: string },
  purpose: BucketPurpose,
): string => `${place.prefix}-${place.account}-${place.region}-${purpose}`;

/** Whose key a file system of FSx for Lustre uses, and for which bucket. Values may be tokens of the CDK. */
export interface DataRepositoryKey {
  partition: string;
  account: string;
  region: string;
  /** Domain of the services of the partition, `amazonaws.com`. */
  urlSuffix: string;
  bucketName: string;
}

/**
 * Statements of the key of a data repository. The service-linked role of a file system reads and writes objects of a bucket with a
 * customer managed key only when the policy of the key says so; the role is named after the file system, which does not exist yet. With
 * bucket keys, the context is the bucket's ARN.
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
    // DescribeKey carries no encryption context.
    statement('LustreDataRepositoryKey', 'kms:DescribeKey'),
  ];
}
