import { REGIONS } from '../../core/catalog/regions';
import { arnOf, JOB_LOG_GROUPS } from '../../core/contracts/names';
import type { JobRoleContext } from './job-role-context';
import { type ExactStatement, logGroupArn } from './statement';
import {
  externalStatements,
  foreignDataStatements,
  imageStatements,
  listBucket,
  MULTIPART,
  networkStatements,
  secretStatements,
  teamKeyDenials,
} from './statements/job';

/**
 * Role of a team's training containers: reads data, driver, job files and code, and writes its own checkpoints and outputs. Deletion is
 * allowed only in the checkpoint prefix, because the checkpoint library renames by copying and deleting.
 */
export function executionStatements(context: JobRoleContext): ExactStatement[] {
  const own = `runs/${context.team}`;
  const checkpoints = `${context.checkpointBucketArn}/${own}/*`;
  return [
    ...sharedStatements(context, JOB_LOG_GROUPS.training),
    listBucket('ListOwnCheckpoints', context.checkpointBucketArn, [own, `${own}/*`]),
    {
      sid: 'KeepOwnCheckpoints',
      actions: ['s3:GetObject', 's3:PutObject', 's3:DeleteObject', ...MULTIPART],
      resources: [checkpoints],
      wildcard: 'The objects of all runs of one team.',
    },
  ];
}

/**
 * Role of a team's processing containers: as above, except that its results are written to the prefixes of the data bucket that the team
 * owns, where it may add and replace objects (old versions are kept) but not delete them.
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

function sharedStatements(context: JobRoleContext, logGroup: string): ExactStatement[] {
  const own = `runs/${context.team}`;
  return [
    ...imageStatements(context),
    ...logStatements(context, logGroup),
    listBucket('ListData', context.dataBucketArn),
    listBucket('ListDriversAndOwnRuns', context.artifactBucketArn, ['drivers', 'drivers/*', own, `${own}/*`]),
    {
      sid: 'ReadDataDriversAndOwnRuns',
      actions: ['s3:GetObject'],
      resources: [
        `${context.dataBucketArn}/*`,
        `${context.artifactBucketArn}/drivers/*`,
        `${context.artifactBucketArn}/${own}/*`,
      ],
      wildcard:
        "Data is shared by the teams, save what NoDataOfOtherTeams denies; drivers and a team's own runs are prefixes.",
    },
    {
      sid: 'WriteOwnOutputs',
      actions: ['s3:PutObject', ...MULTIPART],
      resources: [`${context.artifactBucketArn}/${own}/*/output/*`],
      wildcard: 'The outputs of all runs of one team; job files and code of the same runs stay out of reach.',
    },
    ...foreignDataStatements(context),
    ...keyStatements(context),
    ...teamKeyDenials({
      teamKeyArn: context.teamKeyArn,
      otherKeyArns: writtenKeys(context),
      bucketArns: [context.dataBucketArn, context.checkpointBucketArn, context.artifactBucketArn],
    }),
    ...mlflowStatements(context),
    ...networkStatements(context),
    ...(context.external ?? []).flatMap((place, index) => externalStatements(place, index + 1, context)),
    ...packageStatements(context),
    ...secretStatements(context),
    ...debugStatements(context),
  ];
}

/** Actions that the MLflow client needs to log a run; models are registered by people. */
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

function logStatements(context: JobRoleContext, logGroup: string): ExactStatement[] {
  const group = logGroupArn(context, logGroup);
  return [
    {
      sid: 'MakeLogGroup',
      actions: ['logs:CreateLogGroup', 'logs:DescribeLogStreams'],
      resources: [group, `${group}:*`],
      wildcard: 'One log group: evaluators differ in whether its ARN ends with :*.',
    },
    // CreateLogStream is documented as an action on the log group, PutLogEvents as one on the stream; evaluators differ in the ARN that
    // they use, so both are listed. The ARN of the group does not cover streams of another environment.
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

/**
 * A team with a key of its own reads what the environment's key encrypts but writes only with its own key: an upload that names no key
 * would be encrypted with the bucket's key, and is denied. https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html,
 * 2026-11-23.
 */
function keyStatements({ keyArn: shared, teamKeyArn, region }: JobRoleContext): ExactStatement[] {
  const suffix = REGIONS[region]?.domain ?? 'amazonaws.com';
  const throughS3 = { StringEquals: { 'kms:ViaService': `s3.${region}.${suffix}` } };
  const keyArn = teamKeyArn ?? shared;
  return [
    ...(teamKeyArn
      ? [{ sid: 'ReadWithSharedKey', actions: ['kms:Decrypt'], resources: [shared], conditions: throughS3 }]
      : []),
    // kms:Encrypt: required for output keys by https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html, 2026-11-22.
    {
      sid: 'UseKeyThroughS3',
      actions: ['kms:Decrypt', 'kms:Encrypt', 'kms:GenerateDataKey'],
      resources: [keyArn],
      conditions: throughS3,
    },
    // Volumes: SageMaker passes the key on to the instances' disks.
    {
      sid: 'EncryptVolumes',
      actions: ['kms:CreateGrant'],
      resources: [keyArn],
      conditions: { Bool: { 'kms:GrantIsForAWSResource': 'true' } },
    },
    { sid: 'SeeKey', actions: ['kms:DescribeKey'], resources: [keyArn] },
  ];
}

/** Keys of locations outside the environment to which jobs may write. */
const writtenKeys = ({ external = [] }: JobRoleContext): string[] => [
  ...new Set(external.flatMap(({ access, kmsKeyArn }) => (access === 'read-write' && kmsKeyArn ? [kmsKeyArn] : []))),
];

function packageStatements({ codeArtifact, ...place }: JobRoleContext): ExactStatement[] {
  if (!codeArtifact) return [];
  const { domain, repository } = codeArtifact;
  const arn = (name: string) => arnOf(place, 'codeartifact', name);
  return [
    { sid: 'GetPackageToken', actions: ['codeartifact:GetAuthorizationToken'], resources: [arn(`domain/${domain}`)] },
    {
      sid: 'ReadPackages',
      actions: ['codeartifact:GetRepositoryEndpoint', 'codeartifact:ReadFromRepository'],
      resources: [arn(`repository/${domain}/${repository}`)],
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
