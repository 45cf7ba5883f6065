import { foreignDataStatements, teamKeyDenials } from './data-statements';
import { logGroupArn, logGroupArns, SHARED_LOG_GROUPS } from './log-group-arns';
import type { ExactStatement } from './statement';

/** What the policies of people are made from. All values may be tokens. */
export interface AccessContext {
  readonly partition: string;
  readonly account: string;
  readonly region: string;
  readonly environment: string;
  readonly dataBucketArn: string;
  readonly checkpointBucketArn: string;
  readonly artifactBucketArn: string;
  readonly keyArn: string;
  /** Keys of teams that have one of their own, by team. @default - none */
  readonly teamKeyArns?: Readonly<Record<string, string>>;
  /** Bucket, key and role of the copies of checkpoints in another region. @default - none are made */
  readonly replica?: { readonly bucketArn: string; readonly keyArn: string; readonly roleArn: string };
  readonly runTableArn: string;
  /** Execution and processing roles of one team's jobs, by team. */
  readonly jobRoleArns: Readonly<Record<string, readonly string[]>>;
  /** Repository of the environment's image. @default - it has none */
  readonly repositoryArn?: string;
  /** Prefixes of the data bucket that a team may write, by team. */
  readonly writableData: Readonly<Record<string, readonly string[]>>;
  /** Alias of control by team. */
  readonly aliasArns: Readonly<Record<string, string>>;
  /** Aliases of the function that answers auditors. @default - there is none */
  readonly auditAliasArns?: readonly string[];
}

/**
 * A researcher of one team: launches through the team's alias, reads the team's runs and shared data. Logs come through the alias too:
 * all teams' jobs write to one log group, and FilterLogEvents is allowed for a whole group or not at all.
 */
export function researcherStatements(context: AccessContext, team: string): ExactStatement[] {
  const own = `runs/${team}/*`;
  const writableData = context.writableData[team] ?? [];
  const otherTeams = Object.keys(context.writableData).filter((other) => other !== team);
  return [
    { sid: 'LaunchForOwnTeam', actions: ['lambda:InvokeFunction'], resources: [context.aliasArns[team] ?? ''] },
    ...descriptors(context, team),
    ...preflightReads(context, [team]),
    describeJobs(context, team),
    ...reads('Data', context.dataBucketArn, ['*']),
    ...foreignDataStatements({ dataBucketArn: context.dataBucketArn, otherTeams, writableData }),
    ...reads('OwnCheckpoints', context.checkpointBucketArn, [own]),
    ...reads('OwnRuns', context.artifactBucketArn, [own]),
    {
      sid: 'WriteOwnData',
      actions: ['s3:PutObject', 's3:AbortMultipartUpload'],
      resources: writableData.map((prefix) => `${context.dataBucketArn}/${prefix}*`),
      wildcard: "The team's own places in the data bucket.",
    },
    ...registerModels(context, team),
    ...useOwnKey(context, team),
    ...teamKeyDenials({ teamKeyArn: context.teamKeyArns?.[team], bucketArns: [context.dataBucketArn] }),
  ];
}

/** The platform team: every team's alias, data for all teams, `costs` and `drift`. Deploying is the deployer's right, not this role's. */
export function platformAdminStatements(context: AccessContext): ExactStatement[] {
  return [
    { sid: 'LaunchForAllTeams', actions: ['lambda:InvokeFunction'], resources: Object.values(context.aliasArns) },
    ...descriptors(context, '*'),
    ...preflightReads(context, teamsOf(context)),
    describeJobs(context),
    ...jobLogs(context),
    ...reads('Data', context.dataBucketArn, ['*']),
    ...reads('Checkpoints', context.checkpointBucketArn, ['*']),
    ...reads('Runs', context.artifactBucketArn, ['*']),
    {
      sid: 'KeepSharedData',
      actions: ['s3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload'],
      resources: [`${context.dataBucketArn}/*`],
      wildcard: 'Shared data is kept by the platform team.',
    },
    useKey(context, ['kms:Decrypt', 'kms:GenerateDataKey']),
    ...teamKeys(context, Object.keys(context.teamKeyArns ?? {})),
    compareWithTheBill,
    ...driftReads(context),
  ];
}

/** Looks at everything that happened and at no data: `status`, `list`, `events`, `logs`, `team`, `costs` and `drift` work under it. */
export function auditorStatements(context: AccessContext): ExactStatement[] {
  const { auditAliasArns = [] } = context;
  return [
    ...descriptors(context, '*'),
    ...preflightReads(context, teamsOf(context)),
    describeJobs(context),
    ...jobLogs(context),
    listBuckets(context),
    ...(auditAliasArns.length > 0
      ? [{ sid: 'AskAboutRuns', actions: ['lambda:InvokeFunction'], resources: [...auditAliasArns] }]
      : []),
    {
      sid: 'ReadRuns',
      actions: ['dynamodb:GetItem', 'dynamodb:Query', 'dynamodb:Scan'],
      resources: [context.runTableArn, `${context.runTableArn}/index/*`],
      wildcard: 'The two indexes of the run table.',
    },
    useKey(context, ['kms:Decrypt']),
    compareWithTheBill,
    ...driftReads(context),
  ];
}

const compareWithTheBill: ExactStatement = {
  sid: 'CompareWithTheBill',
  actions: ['ce:GetCostAndUsage'],
  resources: ['*'],
  wildcard: 'Cost Explorer knows no resource of a team for this read; it shows the costs of the whole account.',
};

const BUCKET_SETTINGS = [
  's3:GetEncryptionConfiguration',
  's3:GetLifecycleConfiguration',
  's3:GetBucketPolicy',
  's3:GetBucketPublicAccessBlock',
  's3:GetBucketVersioning',
];

const regionalArn = ({ partition, region, account }: AccessContext, service: string, rest: string): string =>
  `arn:${partition}:${service}:${region}:${account}:${rest}`;

/** What `drift` reads beside CloudFormation's detection, which itself reads each resource with the rights of the caller. */
function driftReads(context: AccessContext): ExactStatement[] {
  const { environment, region } = context;
  const arn = (service: string, rest: string) => regionalArn(context, service, rest);
  const control = arn('lambda', `function:slipway-${environment}-control`);
  return [
    {
      sid: 'DetectDrift',
      actions: [
        'cloudformation:DetectStackDrift',
        'cloudformation:DetectStackResourceDrift',
        'cloudformation:DescribeStackResourceDrifts',
        'cloudformation:GetTemplate',
      ],
      resources: [arn('cloudformation', `stack/Slipway-${environment}-${region}/*`)],
      wildcard: 'The id of the stack follows its name.',
    },
    {
      sid: 'FollowDetection',
      actions: ['cloudformation:DescribeStackDriftDetectionStatus', 'logs:DescribeLogGroups'],
      resources: ['*'],
      wildcard: 'A detection has no ARN, and log groups are listed by the name of none: names and retention alone.',
    },
    ...storageReads(context),
    {
      sid: 'SeeVersionOfControl',
      actions: ['lambda:GetFunctionConfiguration'],
      resources: [control, `${control}:*`],
      wildcard: 'The aliases of the function.',
    },
  ];
}

/** Settings of buckets and keys, and whether checkpoints can be copied: the rule, its role, and bucket and key of the copies. */
function storageReads(context: AccessContext): ExactStatement[] {
  const { replica, dataBucketArn, checkpointBucketArn, keyArn: ownKeyArn, teamKeyArns = {} } = context;
  const settings: ExactStatement[] = [
    { sid: 'SeeSettingsOfBuckets', actions: BUCKET_SETTINGS, resources: [dataBucketArn, checkpointBucketArn] },
    {
      sid: 'SeeSettingsOfKeys',
      actions: ['kms:DescribeKey', 'kms:GetKeyPolicy'],
      resources: [ownKeyArn, ...Object.values(teamKeyArns)],
    },
  ];
  if (!replica) return settings;
  const { bucketArn, keyArn, roleArn } = replica;
  return [
    ...settings,
    { sid: 'SeeReplicationRule', actions: ['s3:GetReplicationConfiguration'], resources: [checkpointBucketArn] },
    { sid: 'SeeReplicationRole', actions: ['iam:GetRole'], resources: [roleArn] },
    { sid: 'SeeBucketOfCopies', actions: ['s3:GetBucketVersioning'], resources: [bucketArn] },
    { sid: 'SeeKeyOfCopies', actions: ['kms:DescribeKey'], resources: [keyArn] },
  ];
}

/** A pipeline that validates and checks before people launch: descriptors, quotas and jobs, nothing that spends. */
export function ciStatements(context: AccessContext): ExactStatement[] {
  return [
    ...descriptors(context, '*'),
    ...preflightReads(context, teamsOf(context)),
    describeJobs(context),
    listBuckets(context),
  ];
}

function descriptors({ partition, region, account, environment }: AccessContext, team: string): ExactStatement[] {
  const parameters = `arn:${partition}:ssm:${region}:${account}:parameter/slipway/environments/${environment}`;
  return [
    {
      // The first names the teams: `--environment <name>` finds the caller's own team by them.
      sid: 'ReadTeamNamesAndDescriptors',
      actions: ['ssm:GetParameter'],
      resources: [parameters, `${parameters}/${team}`],
      wildcard: 'The descriptors of all teams of the environment.',
    },
    // Reading by path would show a team the descriptors of all others.
    ...(team === '*'
      ? [
          {
            sid: 'FindDescriptors',
            actions: ['ssm:GetParametersByPath'],
            resources: [parameters, `${parameters}/`],
          },
        ]
      : []),
  ];
}

const teamsOf = ({ jobRoleArns }: AccessContext): string[] => Object.keys(jobRoleArns);

function preflightReads(context: AccessContext, teams: readonly string[]): ExactStatement[] {
  const { jobRoleArns, repositoryArn } = context;
  return [
    {
      sid: 'SeeJobRoles',
      actions: ['iam:GetRole'],
      resources: teams.flatMap((team) => jobRoleArns[team] ?? []),
    },
    ...(repositoryArn ? [{ sid: 'SeeImages', actions: ['ecr:DescribeImages'], resources: [repositoryArn] }] : []),
    {
      sid: 'SeeQuotasJobNamesAndNetwork',
      actions: [
        'servicequotas:GetServiceQuota',
        'servicequotas:ListServiceQuotas',
        'sagemaker:ListTrainingJobs',
        'sagemaker:ListProcessingJobs',
        'sagemaker:ListTrainingPlans',
        'sagemaker:SearchTrainingPlanOfferings',
        'ec2:DescribeSubnets',
        'ec2:DescribeSecurityGroups',
      ],
      resources: ['*'],
      wildcard:
        'Reads without a resource type, for slipway preflight, quota and plan. Lists hold names of jobs and training plans only.',
    },
    {
      sid: 'SeeTrainingPlans',
      actions: ['sagemaker:DescribeTrainingPlan'],
      resources: [`arn:${context.partition}:sagemaker:${context.region}:${context.account}:training-plan/*`],
      wildcard: 'Training plans belong to the account and not to an environment; a run file names one.',
    },
  ];
}

/** Requests of jobs, with their hyperparameters and variables: of one team, or of all. */
function describeJobs({ partition, region, account, environment }: AccessContext, team?: string): ExactStatement {
  return {
    sid: team === undefined ? 'DescribeJobs' : 'DescribeOwnJobs',
    actions: ['sagemaker:DescribeTrainingJob', 'sagemaker:DescribeProcessingJob'],
    resources: ['training-job', 'processing-job'].map(
      (kind) => `arn:${partition}:sagemaker:${region}:${account}:${kind}/${environment}-*`,
    ),
    conditions: team === undefined ? undefined : { StringEquals: { 'aws:ResourceTag/slipway:team': team } },
    wildcard: 'Jobs are named after the environment that they belong to, and tagged with their team.',
  };
}

/**
 * `slipway publish --registry`: groups of the team's own names, and versions that somebody else approves. Names of environments and teams have
 * no hyphens, so that no other team's names begin so.
 */
function registerModels({ partition, region, account, environment }: AccessContext, team: string): ExactStatement[] {
  const arn = (kind: string) => `arn:${partition}:sagemaker:${region}:${account}:${kind}/${environment}-${team}-*`;
  return [
    {
      sid: 'MakeOwnModelGroups',
      actions: ['sagemaker:CreateModelPackageGroup', 'sagemaker:AddTags'],
      resources: [arn('model-package-group')],
      conditions: { StringEquals: { 'aws:RequestTag/slipway:team': team } },
      wildcard: "Groups are named after the environment and the team, and carry the team's tag.",
    },
    {
      sid: 'RegisterOwnModels',
      actions: ['sagemaker:CreateModelPackage'],
      resources: [arn('model-package-group'), arn('model-package')],
      conditions: { StringEquals: { 'sagemaker:ModelApprovalStatus': 'PendingManualApproval' } },
      wildcard: 'Versions of these groups, which nobody may register as approved.',
    },
  ];
}

/** For those who may read the logs of all teams: the groups hold the streams of all jobs of the account. */
function jobLogs(context: AccessContext): ExactStatement[] {
  return [
    {
      sid: 'SearchJobLogs',
      actions: ['logs:DescribeLogStreams', 'logs:FilterLogEvents'],
      resources: logGroupArns(context, SHARED_LOG_GROUPS),
      wildcard: 'Two log groups: actions on a group are judged with the ending :*.',
    },
    {
      sid: 'ReadJobLogs',
      actions: ['logs:GetLogEvents'],
      resources: SHARED_LOG_GROUPS.map((name) => `${logGroupArn(context, name)}:log-stream:${context.environment}-*`),
      wildcard: "Streams of this environment's jobs.",
    },
  ];
}

/** Whether the buckets are there, as preflight looks: names of objects, and none of them. */
const listBuckets = (context: AccessContext): ExactStatement => ({
  sid: 'ListBuckets',
  actions: ['s3:ListBucket'],
  resources: [context.dataBucketArn, context.checkpointBucketArn, context.artifactBucketArn],
});

function reads(what: string, bucketArn: string, prefixes: readonly string[]): ExactStatement[] {
  return [
    {
      sid: `List${what}`,
      actions: ['s3:ListBucket'],
      resources: [bucketArn],
      conditions: prefixes.includes('*') ? undefined : { StringLike: { 's3:prefix': [...prefixes] } },
    },
    {
      sid: `Read${what}`,
      actions: ['s3:GetObject'],
      resources: prefixes.map((prefix) => `${bucketArn}/${prefix}`),
      wildcard: 'Objects below the prefixes that the persona may read.',
    },
  ];
}

/** A team with a key of its own reads shared data, and writes with its own key alone. */
function useOwnKey(context: AccessContext, team: string): ExactStatement[] {
  if (!context.teamKeyArns?.[team]) return [useKey(context, ['kms:Decrypt', 'kms:GenerateDataKey'])];
  return [useKey(context, ['kms:Decrypt']), ...teamKeys(context, [team])];
}

function teamKeys({ teamKeyArns = {} }: AccessContext, teams: readonly string[]): ExactStatement[] {
  const resources = teams.flatMap((team) => teamKeyArns[team] ?? []);
  return resources.length > 0
    ? [{ sid: 'UseTeamKeys', actions: ['kms:Decrypt', 'kms:GenerateDataKey'], resources }]
    : [];
}

const useKey = ({ keyArn }: AccessContext, actions: string[]): ExactStatement => ({
  sid: 'UseDataKey',
  actions,
  resources: [keyArn],
});
