import { foreignDataStatements } from './job-role-policy';
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
  readonly runTableArn: string;
  /** Execution and processing roles of one team's jobs, by team. */
  readonly jobRoleArns: Readonly<Record<string, readonly string[]>>;
  /** Repository of the environment's image. @default - it has none */
  readonly repositoryArn?: string;
  /** Prefixes of the data bucket that a team may write, by team. */
  readonly writableData: Readonly<Record<string, readonly string[]>>;
  /** Alias of control by team. */
  readonly aliasArns: Readonly<Record<string, string>>;
}

/** A researcher of one team: launches through the team's alias, reads the team's runs, logs and shared data. */
export function researcherStatements(context: AccessContext, team: string): ExactStatement[] {
  const own = `runs/${team}/*`;
  const writableData = context.writableData[team] ?? [];
  const otherTeams = Object.keys(context.writableData).filter((other) => other !== team);
  return [
    { actions: ['lambda:InvokeFunction'], resources: [context.aliasArns[team] ?? ''] },
    ...descriptors(context, team),
    ...preflightReads(context, [team]),
    ...jobLogs(context),
    ...reads(context.dataBucketArn, ['*']),
    ...foreignDataStatements({ dataBucketArn: context.dataBucketArn, otherTeams, writableData }),
    ...reads(context.checkpointBucketArn, [own]),
    ...reads(context.artifactBucketArn, [own]),
    {
      actions: ['s3:PutObject', 's3:AbortMultipartUpload'],
      resources: writableData.map((prefix) => `${context.dataBucketArn}/${prefix}*`),
      wildcard: "The team's own places in the data bucket.",
    },
    useKey(context),
  ];
}

/** The platform team: every team's alias, and data for all teams. Deploying is the deployer's right, not this role's. */
export function platformAdminStatements(context: AccessContext): ExactStatement[] {
  return [
    { actions: ['lambda:InvokeFunction'], resources: Object.values(context.aliasArns) },
    ...descriptors(context, '*'),
    ...preflightReads(context, teamsOf(context)),
    ...jobLogs(context),
    ...[context.dataBucketArn, context.checkpointBucketArn, context.artifactBucketArn].flatMap((arn) =>
      reads(arn, ['*']),
    ),
    {
      actions: ['s3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload'],
      resources: [`${context.dataBucketArn}/*`],
      wildcard: 'Shared data is kept by the platform team.',
    },
    useKey(context),
  ];
}

/** Looks at everything that happened and at no data. */
export function auditorStatements(context: AccessContext): ExactStatement[] {
  return [
    ...descriptors(context, '*'),
    ...preflightReads(context, teamsOf(context)),
    ...jobLogs(context),
    {
      actions: ['dynamodb:GetItem', 'dynamodb:Query', 'dynamodb:Scan'],
      resources: [context.runTableArn, `${context.runTableArn}/index/*`],
      wildcard: 'The two indexes of the run table.',
    },
    useKey(context),
  ];
}

/** A pipeline that validates and checks before people launch: descriptors, quotas and jobs, nothing that spends. */
export function ciStatements(context: AccessContext): ExactStatement[] {
  return [...descriptors(context, '*'), ...preflightReads(context, teamsOf(context))];
}

function descriptors({ partition, region, account, environment }: AccessContext, team: string): ExactStatement[] {
  const parameters = `arn:${partition}:ssm:${region}:${account}:parameter/slipway/environments/${environment}`;
  return [
    {
      // The first names the teams: `--environment <name>` finds the caller's own team by them.
      actions: ['ssm:GetParameter'],
      resources: [parameters, `${parameters}/${team}`],
      wildcard: 'The descriptors of all teams of the environment.',
    },
    // Reading by path would show a team the descriptors of all others.
    ...(team === '*' ? [{ actions: ['ssm:GetParametersByPath'], resources: [parameters, `${parameters}/`] }] : []),
  ];
}

const teamsOf = ({ jobRoleArns }: AccessContext): string[] => Object.keys(jobRoleArns);

function preflightReads(context: AccessContext, teams: readonly string[]): ExactStatement[] {
  const { partition, region, account, environment, jobRoleArns, repositoryArn } = context;
  return [
    { actions: ['iam:GetRole'], resources: teams.flatMap((team) => jobRoleArns[team] ?? []) },
    ...(repositoryArn ? [{ actions: ['ecr:DescribeImages'], resources: [repositoryArn] }] : []),
    {
      actions: [
        'servicequotas:GetServiceQuota',
        'servicequotas:ListServiceQuotas',
        'sagemaker:ListTrainingJobs',
        'sagemaker:ListProcessingJobs',
        'ec2:DescribeSubnets',
        'ec2:DescribeSecurityGroups',
        'ec2:DescribeRouteTables',
        'ec2:DescribeVpcEndpoints',
      ],
      resources: ['*'],
      wildcard: 'Reads without a resource type, for slipway preflight and quota.',
    },
    {
      actions: ['sagemaker:DescribeTrainingJob', 'sagemaker:DescribeProcessingJob'],
      resources: ['training-job', 'processing-job'].map(
        (kind) => `arn:${partition}:sagemaker:${region}:${account}:${kind}/${environment}-*`,
      ),
      wildcard: 'Jobs are named after the environment that they belong to.',
    },
  ];
}

function jobLogs({ partition, region, account, environment }: AccessContext): ExactStatement[] {
  const groups = ['TrainingJobs', 'ProcessingJobs'].map(
    (family) => `arn:${partition}:logs:${region}:${account}:log-group:/aws/sagemaker/${family}`,
  );
  return [
    {
      actions: ['logs:DescribeLogStreams', 'logs:FilterLogEvents', 'logs:StartLiveTail'],
      resources: groups.flatMap((group) => [group, `${group}:*`]),
      wildcard: 'Two log groups: actions on a group are judged with the ending :*.',
    },
    {
      actions: ['logs:GetLogEvents'],
      resources: groups.map((group) => `${group}:log-stream:${environment}-*`),
      wildcard: "Streams of this environment's jobs.",
    },
  ];
}

function reads(bucketArn: string, prefixes: readonly string[]): ExactStatement[] {
  return [
    {
      actions: ['s3:ListBucket'],
      resources: [bucketArn],
      conditions: prefixes.includes('*') ? undefined : { StringLike: { 's3:prefix': [...prefixes] } },
    },
    {
      actions: ['s3:GetObject'],
      resources: prefixes.map((prefix) => `${bucketArn}/${prefix}`),
      wildcard: 'Objects below the prefixes that the persona may read.',
    },
  ];
}

const useKey = ({ keyArn }: AccessContext): ExactStatement => ({
  actions: ['kms:Decrypt', 'kms:GenerateDataKey'],
  resources: [keyArn],
});
