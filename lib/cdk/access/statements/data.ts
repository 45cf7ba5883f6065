import type { JobRoleContext } from '../job-role-context';
import type { ExactStatement } from '../statement';

/** Permission of writers of large objects for aborting an upload. */
export const MULTIPART = ['s3:AbortMultipartUpload'];

/** Listing of a bucket, or of some prefixes of it. */
export function listBucket(sid: string, bucketArn: string, prefixes?: readonly string[]): ExactStatement {
  const conditions = prefixes && { StringLike: { 's3:prefix': [...prefixes] } };
  return { sid, actions: ['s3:ListBucket'], resources: [bucketArn], conditions };
}

/** All teams may read shared data; data below `teams/<team>/` belongs to that team, unless another team is configured for it too. */
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
    ...foreignNames(dataBucketArn, foreign, writableData),
  ];
}

const TEAMS = 'teams/';

/**
 * Lists below `teams/` begin in the folder of the team. One that begins above the folders of the teams, or with a part of the name of one,
 * shows what lies in them unless it ends at the next folder. The folders of other teams are not named, because thirty teams name 29 each.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/amazon-s3-policy-keys.html, 2026-11-27.
 */
function foreignNames(
  bucketArn: string,
  foreign: readonly string[],
  writableData: readonly string[],
): ExactStatement[] {
  const above = Array.from({ length: TEAMS.length }, (_, i) => TEAMS.slice(0, i));
  const own = writableData.filter((prefix) => prefix.startsWith(TEAMS));
  const names = own.map((prefix) => prefix.replace(/\/$/, ''));
  const alone = names.filter((name) => !foreign.some((prefix) => prefix.startsWith(name)));
  const denial = { deny: true, actions: ['s3:ListBucket'], resources: [bucketArn] };
  return [
    {
      ...denial,
      sid: 'NoNamesOfOtherTeams',
      conditions: {
        StringLike: { 's3:prefix': `${TEAMS}*/*` },
        StringNotLike: { 's3:prefix': own.map((prefix) => `${prefix}*`) },
      },
    },
    {
      ...denial,
      sid: 'NoNamesAboveTeams',
      conditions: {
        StringLikeIfExists: { 's3:prefix': [...above, `${TEAMS}*`] },
        StringNotLikeIfExists: { 's3:prefix': [`${TEAMS}*/*`, ...alone] },
        StringNotEquals: { 's3:delimiter': '/' },
      },
    },
  ];
}

/** Prefix of the data bucket that belongs to one team. */
export const ownData = (team: string): string => `${TEAMS}${team}/`;

/** Listing, reading and, if configured, writing of one location in `storage.external`. */
export function externalStatements(
  place: { readonly s3: string; readonly access?: string; readonly kmsKeyArn?: string },
  number: number,
  { partition }: JobRoleContext,
): ExactStatement[] {
  const [bucket = '', ...rest] = place.s3.replace(/^s3:\/\//, '').split('/');
  const prefix = rest.join('/');
  // A location is a folder: `tokens` does not open `tokens-private/`.
  const below = prefix === '' || prefix.endsWith('/') ? [`${prefix}*`] : [prefix, `${prefix}/*`];
  const bucketArn = `arn:${partition}:s3:::${bucket}`;
  const writes = place.access === 'read-write' ? ['s3:PutObject', ...MULTIPART] : [];
  return [
    listBucket(`ListExternal${number}`, bucketArn, prefix === '' ? undefined : below),
    {
      sid: `UseExternal${number}`,
      actions: ['s3:GetObject', ...writes],
      resources: below.map((name) => `${bucketArn}/${name}`),
      wildcard: 'The folder that storage.external names.',
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

/** Inputs of the denials for writers of a team with a key of its own. */
export interface TeamKeyBoundary {
  /** Key of the team. @default - the team has none, and nothing is denied */
  readonly teamKeyArn?: string;
  /** Keys of other locations that may be written. @default - none */
  readonly otherKeyArns?: readonly string[];
  /** Buckets of the environment. */
  readonly bucketArns: readonly string[];
}

/**
 * Denials that leave one key for writing, whichever key an upload names.
 *
 * The use of KMS keys is denied in KMS, where it is authorized with the caller's permissions, and not by the headers of an upload: an
 * upload that names no key, or only `aws:kms`, has no key in its headers, and the policy of the key `aws/s3` allows its use to the whole
 * account. SSE-S3 uses no KMS key, so for it the header decides; an upload without the header does not match (StringEquals with an absent
 * key). https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html,
 * https://docs.aws.amazon.com/kms/latest/developerguide/concepts.html#aws-managed-cmk, 2026-11-23; assumption `team-key-alone`.
 */
export function teamKeyDenials({ teamKeyArn, otherKeyArns = [], bucketArns }: TeamKeyBoundary): ExactStatement[] {
  if (!teamKeyArn) return [];
  return [
    {
      sid: 'WriteWithNoOtherKey',
      deny: true,
      actions: ['kms:Encrypt', 'kms:GenerateDataKey'],
      resources: [],
      notResources: [teamKeyArn, ...otherKeyArns],
    },
    {
      sid: 'WriteWithNoKeyOfAmazonS3',
      deny: true,
      actions: ['s3:PutObject'],
      resources: bucketArns.map((arn) => `${arn}/*`),
      conditions: { StringEquals: { 's3:x-amz-server-side-encryption': 'AES256' } },
      wildcard: 'A denial for every object of the buckets.',
    },
  ];
}
