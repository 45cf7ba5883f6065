import { arnOf } from '../../../core/contracts/names';
import { type ExactStatement, jobsOf, logGroupArn, logGroupArns, type Place, SHARED_LOG_GROUPS } from '../statement';

/** Inputs for the policies of people. All values may be tokens. */
export interface AccessContext extends Place {
  readonly environment: string;
  readonly dataBucketArn: string;
  readonly checkpointBucketArn: string;
  readonly artifactBucketArn: string;
  readonly keyArn: string;
  /** Keys of teams with a key of their own, by team. @default - none */
  readonly teamKeyArns?: Readonly<Record<string, string>>;
  readonly runTableArn: string;
  /** Execution and processing roles of one team's jobs, by team. */
  readonly jobRoleArns: Readonly<Record<string, readonly string[]>>;
  /** Repository of the environment's image. @default - it has none */
  readonly repositoryArn?: string;
  /** Prefixes of the data bucket to which a team may write, by team. */
  readonly writableData: Readonly<Record<string, readonly string[]>>;
  /** Aliases of control, by team. */
  readonly aliasArns: Readonly<Record<string, string>>;
  /** Aliases of the function that answers auditors. @default - none */
  readonly auditAliasArns?: readonly string[];
}

/** Reads the list of team names, and the descriptors of one team or, with `*`, of all. */
export function descriptors(context: AccessContext, team: string): ExactStatement[] {
  const parameters = arnOf(context, 'ssm', `parameter/slipway/environments/${context.environment}`);
  return [
    {
      // The list of teams: `--environment <name>` finds the caller's own team with it.
      sid: 'ReadTeamNamesAndDescriptors',
      actions: ['ssm:GetParameter'],
      resources: [parameters, `${parameters}/${team}`],
      wildcard: 'The descriptors of all teams of the environment.',
    },
  ];
}

/** Names of the teams. */
export const teamsOf = ({ jobRoleArns }: AccessContext): string[] => Object.keys(jobRoleArns);

/** Reads of `slipway preflight`, `quota` and `plan`. */
export function preflightReads(context: AccessContext, teams: readonly string[]): ExactStatement[] {
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
        'servicequotas:GetAWSDefaultServiceQuota',
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
      resources: [arnOf(context, 'sagemaker', 'training-plan/*')],
      wildcard: 'Training plans belong to the account and not to an environment; a run file names one.',
    },
  ];
}

/** Requests of jobs, including hyperparameters and environment variables: of one team, or of all. */
export const describeJobs = (context: AccessContext, team?: string): ExactStatement => ({
  sid: team === undefined ? 'DescribeJobs' : 'DescribeOwnJobs',
  actions: ['sagemaker:DescribeTrainingJob', 'sagemaker:DescribeProcessingJob'],
  resources: [jobsOf(context, 'training-job'), jobsOf(context, 'processing-job')],
  conditions: team === undefined ? undefined : { StringEquals: { 'aws:ResourceTag/slipway:team': team } },
  wildcard: 'Jobs are named after the environment that they belong to, and tagged with their team.',
});

/**
 * `slipway publish --registry`: groups with names of the team, and versions that another person approves. Names of environments and teams
 * contain no hyphens, so that no other team's names have the same prefix.
 */
export function registerModels(context: AccessContext, team: string): ExactStatement[] {
  const arn = (kind: string) => arnOf(context, 'sagemaker', `${kind}/${context.environment}-${team}-*`);
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

/** For people who may read the logs of all teams: the groups contain the streams of all jobs of the account. */
export function jobLogs(context: AccessContext): ExactStatement[] {
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

/** Whether the buckets exist, for preflight: lists names of objects, but does not read the objects. */
export const listBuckets = (context: AccessContext): ExactStatement => ({
  sid: 'ListBuckets',
  actions: ['s3:ListBucket'],
  resources: [context.dataBucketArn, context.checkpointBucketArn, context.artifactBucketArn],
});

/** Lists and reads objects below prefixes of a bucket; `*` is the whole bucket. */
export function reads(what: string, bucketArn: string, prefixes: readonly string[]): ExactStatement[] {
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

/** A team with a key of its own reads shared data, but writes only with its own key. */
export function useOwnKey(context: AccessContext, team: string): ExactStatement[] {
  if (!context.teamKeyArns?.[team]) return [useKey(context, ['kms:Decrypt', 'kms:GenerateDataKey'])];
  return [useKey(context, ['kms:Decrypt']), ...teamKeys(context, [team])];
}

/** Keys of teams with a key of their own, for reading and writing. */
export function teamKeys({ teamKeyArns = {} }: AccessContext, teams: readonly string[]): ExactStatement[] {
  const resources = teams.flatMap((team) => teamKeyArns[team] ?? []);
  return resources.length > 0
    ? [{ sid: 'UseTeamKeys', actions: ['kms:Decrypt', 'kms:GenerateDataKey'], resources }]
    : [];
}

/** The environment's key. */
export const useKey = ({ keyArn }: AccessContext, actions: string[]): ExactStatement => ({
  sid: 'UseDataKey',
  actions,
  resources: [keyArn],
});
