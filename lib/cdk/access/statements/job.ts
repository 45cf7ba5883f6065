import { awsRepositories } from '../../../core/catalog/images/images';
import { secretPrefix } from '../../../core/config/formats/secrets';
import { arnOf } from '../../../core/contracts/names';
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
interface TeamKeyBoundary {
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

/** The images that jobs may pull. */
export function imageStatements(context: JobRoleContext): ExactStatement[] {
  return [
    {
      sid: 'LogInToRegistries',
      actions: ['ecr:GetAuthorizationToken'],
      resources: ['*'],
      wildcard: 'The token is for the registry: the action has no resource type.',
    },
    {
      sid: 'PullImages',
      actions: ['ecr:BatchCheckLayerAvailability', 'ecr:GetDownloadUrlForLayer', 'ecr:BatchGetImage'],
      resources: imageRepositories(context),
      wildcard: 'Without guardrails.allowedImages any image of this account may be used.',
    },
  ];
}

/** ARNs of the repositories that jobs may pull from. */
export function imageRepositories(context: JobRoleContext): string[] {
  const { partition, region, account, allowedImages } = context;
  const arn = (owner: string, name: string) => arnOf({ ...context, account: owner }, 'ecr', `repository/${name}`);
  const allows = (kind: string) => !allowedImages || allowedImages.includes(kind);
  const given = context.imageUri !== undefined && allows('environment') ? [context.imageUri] : [];
  const named = [...given, ...(allowedImages ?? [])].flatMap((prefix) => repositoriesBelow(partition, prefix));
  return [
    ...(context.repositoryName && allowedImages && allows('environment') ? [arn(account, context.repositoryName)] : []),
    ...(allowedImages ? [] : [arn(account, '*')]),
    ...named,
    ...awsRepositories(region).flatMap(({ kind, account: owner, repository }) =>
      allows(kind) ? [arn(owner, repository)] : [],
    ),
  ];
}

/** The repositories that a prefix of an image URI allows, as in the rule `guardrails/images`: one by name, and those below it. */
function repositoriesBelow(partition: string, prefix: string): string[] {
  const found = /^(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.[a-z.]+(?:\/([^:@]*)([:@].*)?)?$/.exec(prefix);
  if (!found) return [];
  const [, account = '', region = '', name = '', version] = found;
  const repository = (text: string) => arnOf({ partition, region, account }, 'ecr', `repository/${text}`);
  if (version !== undefined) return [repository(name)];
  return name === '' || name.endsWith('/') ? [repository(`${name}*`)] : [repository(name), repository(`${name}/*`)];
}

/** Network interfaces that SageMaker creates in the VPC with this role: only in the environment's subnets and security groups. */
export function networkStatements(context: JobRoleContext): ExactStatement[] {
  const { subnetIds, securityGroupIds, isForeignNetwork } = context;
  if (subnetIds.length === 0) return [];
  // The ARN of a subnet that is shared through RAM contains its owner's account; the id of a subnet is unique.
  const owner = isForeignNetwork ? { ...context, account: '*' } : context;
  const subnets = subnetIds.map((id) => arnOf(owner, 'ec2', `subnet/${id}`));
  const groups = securityGroupIds.map((id) => arnOf(owner, 'ec2', `security-group/${id}`));
  const interfaces = arnOf(context, 'ec2', 'network-interface/*');
  return [
    {
      sid: 'SeeNetwork',
      actions: [
        'ec2:DescribeDhcpOptions',
        'ec2:DescribeNetworkInterfaces',
        'ec2:DescribeSecurityGroups',
        'ec2:DescribeSubnets',
        'ec2:DescribeVpcs',
      ],
      resources: ['*'],
      wildcard: 'Describe actions of EC2 have no resource type.',
    },
    {
      sid: 'MakeInterfaces',
      actions: ['ec2:CreateNetworkInterface'],
      resources: [interfaces, ...subnets, ...groups],
      wildcard: 'An interface has no id before it is made; subnets and groups are named.',
    },
    {
      sid: 'HandOverInterfaces',
      actions: [
        'ec2:CreateNetworkInterfacePermission',
        'ec2:DeleteNetworkInterface',
        'ec2:DeleteNetworkInterfacePermission',
      ],
      resources: [interfaces],
      conditions: { ArnLike: { 'ec2:Subnet': subnets } },
      wildcard: 'Interfaces are made per job; the condition holds them to the subnets of the environment.',
    },
  ];
}

/**
 * Permissions of a container for `secrets` of a run file. Secrets Manager and Parameter Store decrypt with the caller's permissions: with
 * the AWS managed keys the role needs nothing more; the policy of a customer managed key must name the role.
 * https://docs.aws.amazon.com/secretsmanager/latest/userguide/security-encryption.html, 2026-11-22.
 */
export function secretStatements({ secretsPrefix, ...place }: JobRoleContext): ExactStatement[] {
  if (secretsPrefix === undefined) return [];
  const prefix = secretPrefix(secretsPrefix);
  const wildcard =
    'Secrets of the team begin with its prefix, and an ARN ends with six letters that nobody knows before.';
  return [
    {
      sid: 'ReadSecrets',
      actions: ['secretsmanager:GetSecretValue'],
      resources: [arnOf(place, 'secretsmanager', `secret:${prefix}*`)],
      wildcard,
    },
    {
      sid: 'ReadSecretParameters',
      actions: ['ssm:GetParameter'],
      resources: [arnOf(place, 'ssm', `parameter/${prefix}*`)],
      wildcard,
    },
  ];
}
