import { REGIONS } from '../../catalog/regions';
import { JOB_LOG_GROUPS } from '../../contracts/job-log-groups';
import { logGroupArn } from './log-group-arns';
import { secretStatements } from './secret-statements';
import type { ExactStatement } from './statement';

/** What the roles of one team's jobs are made from. All values may be tokens. */
export interface JobRoleContext {
  /** Partition of the account: aws, aws-cn or aws-us-gov. */
  readonly partition: string;
  /** Account of the environment. */
  readonly account: string;
  /** Region of the environment. */
  readonly region: string;
  /** Name of the environment: jobs are called `<environment>-...`. */
  readonly environment: string;
  /** Team whose jobs take the role on. */
  readonly team: string;
  /** The environment's other teams, whose own data stays out of reach. @default - none */
  readonly otherTeams?: readonly string[];
  /** Prefixes of the data bucket that the team's processing jobs may write. */
  readonly writableData: readonly string[];
  /** MLflow tracking servers and apps that jobs may log to. @default - none */
  readonly mlflow?: readonly string[];
  /** Bucket of data sets. */
  readonly dataBucketArn: string;
  /** Bucket of checkpoints. */
  readonly checkpointBucketArn: string;
  /** Bucket of code, drivers and results. */
  readonly artifactBucketArn: string;
  /** Key of the three buckets. */
  readonly keyArn: string;
  /** Name of the environment's own image repository. @default - it has none */
  readonly repositoryName?: string;
  /** Kinds and URI prefixes of allowed images. @default - every kind, and every repository of this account */
  readonly allowedImages?: readonly string[];
  /** Subnets and groups of jobs; empty: jobs run without a VPC. */
  readonly subnetIds: readonly string[];
  /** Security groups of jobs, whose network interfaces SageMaker makes with the role. */
  readonly securityGroupIds: readonly string[];
  /** Whether subnets and groups may belong to another account, which shares them. @default false */
  readonly isForeignNetwork?: boolean;
  /** Data outside the environment. @default - none */
  readonly external?: readonly { readonly s3: string; readonly access?: string; readonly kmsKeyArn?: string }[];
  /** Domain and repository that `requirements` come from. @default - none */
  readonly codeArtifact?: { readonly domain: string; readonly repository: string };
  /** What the names of secrets and parameters begin with that jobs may read. @default - none */
  readonly secretsPrefix?: string;
  /** Whether a shell in the container is allowed. @default false */
  readonly allowsRemoteDebug?: boolean;
}

/** Repositories of the Deep Learning Containers with PyTorch: lib/catalog/images.ts names the same. */
const DLC_REPOSITORIES = ['pytorch', 'pytorch-training', 'huggingface-pytorch-training'];
const SMP_REPOSITORY = 'smdistributed-modelparallel';

/**
 * Role of a team's training containers: reads data, driver, job files and code, writes its own checkpoints and outputs.
 * Deleting is for the checkpoint prefix alone: the checkpoint library renames by copy and delete.
 */
export function executionStatements(context: JobRoleContext): ExactStatement[] {
  const own = `runs/${context.team}`;
  const checkpoints = `${context.checkpointBucketArn}/${own}/*`;
  return [
    ...sharedStatements(context, JOB_LOG_GROUPS.training),
    list('ListOwnCheckpoints', context.checkpointBucketArn, [own, `${own}/*`]),
    {
      sid: 'KeepOwnCheckpoints',
      actions: ['s3:GetObject', 's3:PutObject', 's3:DeleteObject', ...MULTIPART],
      resources: [checkpoints],
      wildcard: 'The objects of all runs of one team.',
    },
  ];
}

/**
 * Role of a team's processing containers: as above, but what it makes goes into the prefixes of the data bucket that the team
 * owns, where it may add and replace (old versions stay) and not delete.
 */
export function processingStatements(context: JobRoleContext): ExactStatement[] {
  return [
    ...sharedStatements(context, JOB_LOG_GROUPS.processing),
    {
      sid: 'WriteOwnData',
      actions: ['s3:PutObject', ...MULTIPART],
      resources: context.writableData.map((prefix) => `${context.dataBucketArn}/${prefix}*`),
      wildcard: 'The run file names the folder that prepared data goes to, below what the team owns.',
    },
  ];
}

/** What a writer of large objects needs when it gives up. */
const MULTIPART = ['s3:AbortMultipartUpload'];

function sharedStatements(context: JobRoleContext, logGroup: string): ExactStatement[] {
  const own = `runs/${context.team}`;
  return [
    ...imageStatements(context),
    ...logStatements(context, logGroup),
    list('ListData', context.dataBucketArn),
    list('ListDriversAndOwnRuns', context.artifactBucketArn, ['drivers', 'drivers/*', own, `${own}/*`]),
    {
      sid: 'ReadDataDriversAndOwnRuns',
      actions: ['s3:GetObject'],
      resources: [
        `${context.dataBucketArn}/*`,
        `${context.artifactBucketArn}/drivers/*`,
        `${context.artifactBucketArn}/${own}/*`,
      ],
      wildcard: "Data is shared by the teams; drivers and a team's own runs are prefixes.",
    },
    {
      sid: 'WriteOwnOutputs',
      actions: ['s3:PutObject', ...MULTIPART],
      resources: [`${context.artifactBucketArn}/${own}/*/output/*`],
      wildcard: 'The outputs of all runs of one team; job files and code of the same runs stay out of reach.',
    },
    ...foreignDataStatements(context),
    ...keyStatements(context),
    ...mlflowStatements(context),
    ...networkStatements(context),
    ...(context.external ?? []).flatMap((place, index) => externalStatements(place, index + 1, context)),
    ...packageStatements(context),
    ...secretStatements(context),
    ...debugStatements(context),
  ];
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

/** Actions of the MLflow client that logs a run; models are registered by people. */
const MLFLOW_LOGGING = [
  'sagemaker-mlflow:CreateExperiment',
  'sagemaker-mlflow:CreateRun',
  'sagemaker-mlflow:GetExperiment',
  'sagemaker-mlflow:GetExperimentByName',
  'sagemaker-mlflow:GetRun',
  'sagemaker-mlflow:ListArtifacts',
  'sagemaker-mlflow:LogBatch',
  'sagemaker-mlflow:LogInputs',
  'sagemaker-mlflow:LogMetric',
  'sagemaker-mlflow:LogModel',
  'sagemaker-mlflow:LogOutputs',
  'sagemaker-mlflow:LogParam',
  'sagemaker-mlflow:SearchRuns',
  'sagemaker-mlflow:SetExperimentTag',
  'sagemaker-mlflow:SetTag',
  'sagemaker-mlflow:UpdateRun',
];

function mlflowStatements({ mlflow = [] }: JobRoleContext): ExactStatement[] {
  const servers = mlflow.filter((arn) => arn.includes(':mlflow-tracking-server/'));
  const apps = mlflow.filter((arn) => arn.includes(':mlflow-app/'));
  return [
    ...(servers.length > 0 ? [{ sid: 'LogToMlflowServers', actions: MLFLOW_LOGGING, resources: servers }] : []),
    ...(apps.length > 0 ? [{ sid: 'LogToMlflowApps', actions: ['sagemaker:CallMlflowAppApi'], resources: apps }] : []),
  ];
}

/** Listing of a bucket, or of some prefixes of it. */
function list(sid: string, bucketArn: string, prefixes?: readonly string[]): ExactStatement {
  const conditions = prefixes && { StringLike: { 's3:prefix': [...prefixes] } };
  return { sid, actions: ['s3:ListBucket'], resources: [bucketArn], conditions };
}

function imageStatements(context: JobRoleContext): ExactStatement[] {
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
  const arn = (owner: string, name: string) => `arn:${partition}:ecr:${region}:${owner}:repository/${name}`;
  const facts = REGIONS[region];
  const allows = (kind: string) => !allowedImages || allowedImages.includes(kind);
  const dlc = DLC_REPOSITORIES.filter((name) => allows(name.startsWith('huggingface') ? 'huggingface' : 'dlc'));
  const named = (allowedImages ?? []).flatMap((prefix) => {
    const found = /^(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.[a-z.]+\/([^:@]+)/.exec(prefix);
    return found ? [`arn:${partition}:ecr:${found[2]}:${found[1]}:repository/${found[3]}`] : [];
  });
  return [
    ...(context.repositoryName && allowedImages && allows('environment') ? [arn(account, context.repositoryName)] : []),
    ...(allowedImages ? named : [arn(account, '*')]),
    ...(facts ? dlc.map((name) => arn(facts.dlcAccount, name)) : []),
    ...(facts?.smpAccount && allows('smp') ? [arn(facts.smpAccount, SMP_REPOSITORY)] : []),
  ];
}

function logStatements(context: JobRoleContext, logGroup: string): ExactStatement[] {
  const group = logGroupArn(context, logGroup);
  return [
    {
      sid: 'MakeLogGroup',
      actions: ['logs:CreateLogGroup', 'logs:DescribeLogStreams'],
      resources: [group, `${group}:*`],
      wildcard: 'One log group: evaluators differ in whether its ARN ends with :*.',
    },
    // CreateLogStream is documented as an action on the group, PutLogEvents as one on the stream; evaluators differ in which ARN
    // they ask for, so both are named. The group's own ARN covers no stream of another environment.
    {
      sid: 'WriteLogs',
      actions: ['logs:CreateLogStream', 'logs:PutLogEvents'],
      resources: [group, `${group}:log-stream:${context.environment}-*`],
      wildcard: "The streams of this environment's jobs in the group that SageMaker shares between all jobs.",
    },
    {
      sid: 'WriteMetrics',
      actions: ['cloudwatch:PutMetricData'],
      resources: ['*'],
      conditions: { StringEquals: { 'cloudwatch:namespace': [logGroup, 'Slipway'] } },
      wildcard: 'The action has no resource type; the namespace is fixed by the condition.',
    },
  ];
}

function keyStatements({ keyArn, region }: JobRoleContext): ExactStatement[] {
  const suffix = REGIONS[region]?.domain ?? 'amazonaws.com';
  return [
    // kms:Encrypt: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html asks for it with a key for outputs, 2026-11-22.
    {
      sid: 'UseKeyThroughS3',
      actions: ['kms:Decrypt', 'kms:Encrypt', 'kms:GenerateDataKey'],
      resources: [keyArn],
      conditions: { StringEquals: { 'kms:ViaService': `s3.${region}.${suffix}` } },
    },
    // Volumes: SageMaker hands the key on to the instances' disks.
    {
      sid: 'EncryptVolumes',
      actions: ['kms:CreateGrant'],
      resources: [keyArn],
      conditions: { Bool: { 'kms:GrantIsForAWSResource': 'true' } },
    },
    { sid: 'SeeKey', actions: ['kms:DescribeKey'], resources: [keyArn] },
  ];
}

/** Network interfaces that SageMaker makes in the VPC with this role: in the environment's subnets and group only. */
function networkStatements(context: JobRoleContext): ExactStatement[] {
  const { partition, region, account, subnetIds, securityGroupIds, isForeignNetwork } = context;
  if (subnetIds.length === 0) return [];
  const owned = (kind: string, id: string, owner = account) => `arn:${partition}:ec2:${region}:${owner}:${kind}/${id}`;
  // A subnet that is shared through RAM carries its owner's account; its id is unique.
  const arn = (kind: string, id: string) => owned(kind, id, isForeignNetwork ? '*' : account);
  const subnets = subnetIds.map((id) => arn('subnet', id));
  const interfaces = owned('network-interface', '*');
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
      resources: [interfaces, ...subnets, ...securityGroupIds.map((id) => arn('security-group', id))],
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

function externalStatements(
  place: { readonly s3: string; readonly access?: string; readonly kmsKeyArn?: string },
  number: number,
  { partition }: JobRoleContext,
): ExactStatement[] {
  const [bucket = '', ...rest] = place.s3.replace(/^s3:\/\//, '').split('/');
  const prefix = rest.join('/');
  const bucketArn = `arn:${partition}:s3:::${bucket}`;
  const writes = place.access === 'read-write' ? ['s3:PutObject', ...MULTIPART] : [];
  return [
    list(`ListExternal${number}`, bucketArn, prefix === '' ? undefined : [`${prefix}*`]),
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

function packageStatements({ codeArtifact, partition, region, account }: JobRoleContext): ExactStatement[] {
  if (!codeArtifact) return [];
  const { domain, repository } = codeArtifact;
  const arn = `arn:${partition}:codeartifact:${region}:${account}`;
  return [
    {
      sid: 'GetPackageToken',
      actions: ['codeartifact:GetAuthorizationToken'],
      resources: [`${arn}:domain/${domain}`],
    },
    {
      sid: 'ReadPackages',
      actions: ['codeartifact:GetRepositoryEndpoint', 'codeartifact:ReadFromRepository'],
      resources: [`${arn}:repository/${domain}/${repository}`],
    },
    {
      sid: 'BearPackageToken',
      actions: ['sts:GetServiceBearerToken'],
      resources: ['*'],
      conditions: { StringEquals: { 'sts:AWSServiceName': 'codeartifact.amazonaws.com' } },
      wildcard: 'The action has no resource type; the service is fixed by the condition.',
    },
  ];
}

function debugStatements({ allowsRemoteDebug }: JobRoleContext): ExactStatement[] {
  if (!allowsRemoteDebug) return [];
  return [
    {
      sid: 'RemoteDebug',
      actions: [
        'ssmmessages:CreateControlChannel',
        'ssmmessages:CreateDataChannel',
        'ssmmessages:OpenControlChannel',
        'ssmmessages:OpenDataChannel',
      ],
      resources: ['*'],
      wildcard: 'guardrails.allowRemoteDebug is on, and the Session Manager channels have no resource type.',
    },
  ];
}
