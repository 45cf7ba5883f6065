/**
 * Tag on objects of checkpoints that were never committed. Reconcile sets it when a run ends; the lifecycle rule of the checkpoint bucket
 * filters on it, so no other objects expire.
 */
export const LEFTOVER_TAG = { key: 'slipway', value: 'leftover' } as const;

/** Name of that lifecycle rule. */
export const LEFTOVER_RULE = 'leftovers';

/** Content of a bucket, the suffix of its name. */
export type BucketPurpose = 'data' | 'checkpoints' | 'artifacts' | 'access-logs';

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
export interface DataRepositoryKey {
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
