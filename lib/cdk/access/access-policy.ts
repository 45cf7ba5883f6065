import { arnOf, controlFunctionName } from '../../core/contracts/names';
import { teamPageKey } from '../../core/contracts/storage';
import type { ExactStatement } from './statement';
import { foreignDataStatements, teamKeyDenials } from './statements/job';
import {
  type AccessContext,
  describeJobs,
  descriptors,
  jobLogs,
  listBuckets,
  preflightReads,
  reads,
  registerModels,
  teamKeys,
  teamsOf,
  useKey,
  useOwnKey,
} from './statements/personas';

/**
 * A researcher of one team: launches through the team's alias, and reads the team's runs and shared data. Logs are read through the alias
 * too: the jobs of all teams write to one log group, and FilterLogEvents can only be allowed for a whole group.
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
    { sid: 'ReadOwnPage', actions: ['s3:GetObject'], resources: [`${context.artifactBucketArn}/${teamPageKey(team)}`] },
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

/**
 * The platform team: every team's alias, data of all teams, `team --costs` and `drift`. Deploying needs the deployer's permissions, not this
 * role's.
 */
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

/** Reads everything that happened but no data: `status`, `list`, `logs`, `team` and `drift` work with it. */
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

/** Reads of `drift` in addition to CloudFormation's drift detection, which reads each resource with the caller's permissions. */
function driftReads(context: AccessContext): ExactStatement[] {
  const { environment, region, dataBucketArn, checkpointBucketArn, keyArn, teamKeyArns = {} } = context;
  const control = arnOf(context, 'lambda', `function:${controlFunctionName(environment)}`);
  return [
    {
      sid: 'DetectDrift',
      actions: [
        'cloudformation:DetectStackDrift',
        'cloudformation:DetectStackResourceDrift',
        'cloudformation:DescribeStackResourceDrifts',
        'cloudformation:GetTemplate',
      ],
      resources: [arnOf(context, 'cloudformation', `stack/Slipway-${environment}-${region}/*`)],
      wildcard: 'The id of the stack follows its name.',
    },
    {
      sid: 'FollowDetection',
      actions: ['cloudformation:DescribeStackDriftDetectionStatus', 'logs:DescribeLogGroups'],
      resources: ['*'],
      wildcard: 'A detection has no ARN, and log groups are listed by the name of none: names and retention alone.',
    },
    { sid: 'SeeSettingsOfBuckets', actions: BUCKET_SETTINGS, resources: [dataBucketArn, checkpointBucketArn] },
    {
      sid: 'SeeSettingsOfKeys',
      actions: ['kms:DescribeKey', 'kms:GetKeyPolicy'],
      resources: [keyArn, ...Object.values(teamKeyArns)],
    },
    {
      sid: 'SeeVersionOfControl',
      actions: ['lambda:GetFunctionConfiguration'],
      resources: [control, `${control}:*`],
      wildcard: 'The aliases of the function.',
    },
  ];
}

/** A pipeline that validates and checks before people launch: reads descriptors, quotas and jobs, and spends nothing. */
export function ciStatements(context: AccessContext): ExactStatement[] {
  return [
    ...descriptors(context, '*'),
    ...preflightReads(context, teamsOf(context)),
    describeJobs(context),
    listBuckets(context),
  ];
}
