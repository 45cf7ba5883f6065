import type { JobRoleContext } from './job-role-context';
import type { ExactStatement } from './statement';

/** What a writer of large objects needs when it gives up. */
export const MULTIPART = ['s3:AbortMultipartUpload'];

/** Listing of a bucket, or of some prefixes of it. */
export function listBucket(sid: string, bucketArn: string, prefixes?: readonly string[]): ExactStatement {
  const conditions = prefixes && { StringLike: { 's3:prefix': [...prefixes] } };
  return { sid, actions: ['s3:ListBucket'], resources: [bucketArn], conditions };
}

/** Shared data is everybody's to read; what lies below `teams/<team>/` is that team's, unless it is named as another one's too. */
export function foreignDataStatements({
  dataBucketArn,
  otherTeams = [],
  writableData,
}: Pick<JobRoleContext, 'dataBucketArn' | 'otherTeams' | 'writableData'>): ExactStatement[] {
  const foreign = otherTeams.map(ownData).filter((prefix) => !writableData.some((own) => own.startsWith(prefix)));
  if (foreign.length === 0) return [];
  return [
    {
      sid: 'NoDataOfOtherTeams',
      deny: true,
      actions: ['s3:GetObject'],
      resources: foreign.map((prefix) => `${dataBucketArn}/${prefix}*`),
      wildcard: "A denial of other teams' data.",
    },
  ];
}

/** Prefix of the data bucket that belongs to one team. */
export const ownData = (team: string): string => `teams/${team}/`;

/** Listing, reading and, where it says so, writing one place of `storage.external`. */
export function externalStatements(
  place: { readonly s3: string; readonly access?: string; readonly kmsKeyArn?: string },
  number: number,
  { partition }: JobRoleContext,
): ExactStatement[] {
  const [bucket = '', ...rest] = place.s3.replace(/^s3:\/\//, '').split('/');
  const prefix = rest.join('/');
  const bucketArn = `arn:${partition}:s3:::${bucket}`;
  const writes = place.access === 'read-write' ? ['s3:PutObject', ...MULTIPART] : [];
  return [
    listBucket(`ListExternal${number}`, bucketArn, prefix === '' ? undefined : [`${prefix}*`]),
    {
      sid: `UseExternal${number}`,
      actions: ['s3:GetObject', ...writes],
      resources: [`${bucketArn}/${prefix}*`],
      wildcard: 'The prefix that storage.external names.',
    },
    ...(place.kmsKeyArn
      ? [
          {
            sid: `UseKeyOfExternal${number}`,
            actions: ['kms:Decrypt', ...(writes.length > 0 ? ['kms:GenerateDataKey'] : [])],
            resources: [place.kmsKeyArn],
          },
        ]
      : []),
  ];
}
