import { arnOf } from '../../core/contracts/names';
import { CHECKPOINT_MARKER, HEARTBEAT_OBJECT, teamPageKey } from '../../core/contracts/storage';
import { type AuditContext, answerStatements, distinguishMissing, listRuns, readDescriptors } from './audit-policy';
import { type JobGuardrails, jobConditions, keyDenials, trainingConditions } from './job-guardrails';
import { type ExactStatement, jobsOf } from './statement';

/** Resources of control and reconcile: those that they read, like audit, and those that they write. All values may be tokens. */
export interface LauncherContext extends AuditContext {
  readonly queueArn: string;
  readonly artifactBucketArn: string;
}

/** The key of table and buckets is used with the caller's permissions. */
const KEY_USE = [
  'kms:Decrypt',
  'kms:Encrypt',
  'kms:ReEncryptFrom',
  'kms:ReEncryptTo',
  'kms:GenerateDataKey',
  'kms:DescribeKey',
];

const NAMED = 'Jobs are named after the environment that they belong to.';

/** Control writes intents and presigns uploads with its own permission to put them; it creates no jobs and passes no roles. */
export function controlStatements(context: LauncherContext, allowsRemoteDebug = false): ExactStatement[] {
  const { artifactBucketArn, checkpointBucketArn } = context;
  return [
    ...sharedStatements(context),
    {
      sid: 'KeepRunFilesAndSignUploads',
      actions: ['s3:PutObject'],
      resources: [`${artifactBucketArn}/runs/*/run.yaml`, `${artifactBucketArn}/runs/*/code/*`],
      wildcard: 'Run file and code of every run: the team comes from the alias that was invoked.',
    },
    {
      sid: 'SeeUploads',
      actions: ['s3:GetObject'],
      resources: [`${artifactBucketArn}/runs/*/code/*`],
      wildcard: 'Whether the code of a run was uploaded whole: HeadObject asks for the right to read it.',
    },
    {
      sid: 'DeleteFilesOfRuns',
      actions: ['s3:DeleteObject'],
      resources: [`${artifactBucketArn}/runs/*`, `${checkpointBucketArn}/runs/*`],
      wildcard: 'Files of a run that its team has deleted; S3 keeps deleted checkpoints for one more day.',
    },
    ...answerStatements(context),
    distinguishMissing(artifactBucketArn, checkpointBucketArn),
    ...warmPoolStatements(context),
    ...(allowsRemoteDebug ? shellStatements(context) : []),
  ];
}

/** Allows ending the warm pool of a job, and no other change of the job: the name of a job does not show whose run it belongs to. */
function warmPoolStatements(context: LauncherContext): ExactStatement[] {
  const jobs = jobsOf(context, 'training-job');
  return [
    { sid: 'ReadJobsOfRuns', actions: ['sagemaker:DescribeTrainingJob'], resources: [jobs], wildcard: NAMED },
    {
      sid: 'ReleaseWarmPools',
      actions: ['sagemaker:UpdateTrainingJob'],
      resources: [jobs],
      conditions: {
        NumericEquals: { 'sagemaker:KeepAlivePeriod': '0' },
        Null: { 'sagemaker:EnableRemoteDebug': 'true' },
      },
      wildcard: NAMED,
    },
  ];
}

/**
 * Sessions to the containers of live jobs, if the guardrail allows them. Conditions as in
 * https://docs.aws.amazon.com/sagemaker/latest/dg/train-remote-debugging.html. The name of a job does not show which team it belongs to, so
 * only control, which knows it, may start a session.
 */
function shellStatements(context: LauncherContext): ExactStatement[] {
  return [
    {
      sid: 'TurnRemoteDebugOn',
      actions: ['sagemaker:UpdateTrainingJob'],
      resources: [jobsOf(context, 'training-job')],
      conditions: { Bool: { 'sagemaker:EnableRemoteDebug': 'true' }, Null: { 'sagemaker:KeepAlivePeriod': 'true' } },
      wildcard: NAMED,
    },
    {
      sid: 'OpenShells',
      actions: ['ssm:StartSession'],
      resources: ['*'],
      conditions: {
        StringLike: {
          'ssm:resourceTag/aws:ssmmessages:target-id': [`sagemaker-training-job:${context.environment}-*`],
        },
      },
      wildcard: 'A training container has no ARN of Systems Manager; the condition names the jobs of the environment.',
    },
  ];
}

/** Resources of reconcile in addition to the table and the buckets. */
export interface ReconcileTargets {
  /** Roles of the teams' jobs. */
  readonly passableRoleArns: readonly string[];
  /** Topics of notices. */
  readonly topicArns: readonly string[];
  /** Constraints for every job. */
  readonly guardrails: JobGuardrails;
  /** Queue for events for which all retries failed. */
  readonly undeliveredArn: string;
}

/** Only reconcile creates and stops jobs, and it passes the roles of jobs only to SageMaker. */
export function reconcileStatements(context: LauncherContext, targets: ReconcileTargets): ExactStatement[] {
  return [
    ...sharedStatements(context),
    { sid: 'ReadWaitingRuns', actions: ['dynamodb:BatchGetItem'], resources: [context.runTableArn] },
    ...jobStatements(context, targets),
    ...runFolderStatements(context),
    {
      sid: 'PublishTeamPages',
      actions: ['s3:PutObject'],
      resources: [`${context.artifactBucketArn}/${teamPageKey('*')}`],
      wildcard: 'The page of each team.',
    },
    ...deliveryStatements(context, targets),
  ];
}

/** Jobs of the environment, within the guardrails. */
function jobStatements(context: LauncherContext, { passableRoleArns, guardrails }: ReconcileTargets): ExactStatement[] {
  const training = jobsOf(context, 'training-job');
  const processing = jobsOf(context, 'processing-job');
  const capacity = ['training-plan', 'reserved-capacity'];
  return [
    { sid: 'StopTrainingJobs', actions: ['sagemaker:StopTrainingJob'], resources: [training], wildcard: NAMED },
    {
      sid: 'CreateTrainingJobsWithinGuardrails',
      actions: ['sagemaker:CreateTrainingJob'],
      resources: [training],
      conditions: trainingConditions(guardrails),
      wildcard: NAMED,
    },
    ...keyDenials(guardrails, [training, processing]),
    {
      sid: 'UseTrainingPlans',
      actions: ['sagemaker:CreateTrainingJob'],
      resources: capacity.map((kind) => arnOf(context, 'sagemaker', `${kind}/*`)),
      wildcard: 'The run file names the training plan, which names its reserved capacity.',
    },
    {
      sid: 'CreateProcessingJobsWithinGuardrails',
      actions: ['sagemaker:CreateProcessingJob'],
      resources: [processing],
      conditions: jobConditions(guardrails),
      wildcard: NAMED,
    },
    {
      sid: 'WatchAndStopProcessingJobs',
      actions: ['sagemaker:DescribeProcessingJob', 'sagemaker:StopProcessingJob'],
      resources: [processing],
      wildcard: NAMED,
    },
    {
      sid: 'TagJobsAndReadTags',
      actions: ['sagemaker:AddTags', 'sagemaker:ListTags'],
      resources: [training, processing],
      wildcard: NAMED,
    },
    ...quotaStatements(context),
    {
      sid: 'PassJobRolesToSageMaker',
      actions: ['iam:PassRole'],
      resources: [...passableRoleArns],
      conditions: { StringEquals: { 'iam:PassedToService': 'sagemaker.amazonaws.com' } },
    },
  ];
}

/** Reads all jobs of the account, including those of others. */
function quotaStatements(context: LauncherContext): ExactStatement[] {
  return [
    {
      sid: 'ListJobsThatHoldQuota',
      actions: ['sagemaker:ListTrainingJobs'],
      resources: ['*'],
      wildcard: 'Listing jobs has no resource type.',
    },
    {
      sid: 'ReadJobsThatHoldQuota',
      actions: ['sagemaker:DescribeTrainingJob'],
      resources: [arnOf(context, 'sagemaker', 'training-job/*')],
      wildcard: 'Jobs of others hold quota too: what is free is only known when all of them are read.',
    },
  ];
}

/** Files of runs: writes job files, reads markers and heartbeats, tags uncommitted checkpoints. */
function runFolderStatements({ artifactBucketArn, checkpointBucketArn }: LauncherContext): ExactStatement[] {
  return [
    {
      sid: 'WriteJobFiles',
      actions: ['s3:PutObject'],
      resources: [`${artifactBucketArn}/runs/*/job/*`],
      wildcard: 'job.json of each attempt of each run.',
    },
    {
      sid: 'ListCheckpoints',
      actions: ['s3:ListBucket'],
      resources: [checkpointBucketArn],
      conditions: { StringLike: { 's3:prefix': ['runs/*'] } },
    },
    {
      sid: 'ReadMarkersAndHeartbeats',
      actions: ['s3:GetObject'],
      resources: [CHECKPOINT_MARKER, HEARTBEAT_OBJECT].map((name) => `${checkpointBucketArn}/runs/*/${name}`),
      wildcard: 'Markers and heartbeats of every run; the weights stay out of reach.',
    },
    {
      sid: 'TagUncommittedCheckpoints',
      actions: ['s3:PutObjectTagging'],
      resources: [`${checkpointBucketArn}/runs/*/step-*`],
      wildcard: 'Checkpoints that were never committed get the tag that lets them expire.',
    },
  ];
}

/** Queues from which reconcile receives, and topics to which it publishes. */
function deliveryStatements(context: LauncherContext, targets: ReconcileTargets): ExactStatement[] {
  return [
    // Lambda polls the run queue and forwards failed events with the function's own role.
    {
      sid: 'PollRunQueue',
      actions: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes', 'sqs:ChangeMessageVisibility'],
      resources: [context.queueArn],
    },
    { sid: 'KeepFailedEvents', actions: ['sqs:SendMessage'], resources: [targets.undeliveredArn] },
    { sid: 'Notify', actions: ['sns:Publish'], resources: [...targets.topicArns] },
    {
      sid: 'PublishDecisions',
      actions: ['events:PutEvents'],
      resources: [arnOf(context, 'events', 'event-bus/default')],
    },
  ];
}

function sharedStatements(context: LauncherContext): ExactStatement[] {
  const { runTableArn, queueArn, keyArn, teamKeyArns = [], operationsKeyArn } = context;
  return [
    // Writes are transactions of conditional puts, and of additions to the monthly spend of a team.
    {
      sid: 'ReadAndWriteRuns',
      actions: ['dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem'],
      resources: [runTableArn],
    },
    listRuns(context),
    { sid: 'QueueRuns', actions: ['sqs:SendMessage'], resources: [queueArn] },
    readDescriptors(context),
    {
      sid: 'ReadQuotas',
      actions: ['servicequotas:GetServiceQuota', 'servicequotas:GetAWSDefaultServiceQuota'],
      resources: ['*'],
      wildcard: 'Editions of the Service Authorization Reference before 2026 know no resource type for this read.',
    },
    { sid: 'UseDataKey', actions: KEY_USE, resources: [keyArn] },
    ...(teamKeyArns.length > 0
      ? [{ sid: 'UseTeamKeys', actions: ['kms:Decrypt', 'kms:GenerateDataKey'], resources: [...teamKeyArns] }]
      : []),
    { sid: 'UseOperationsKey', actions: ['kms:Decrypt', 'kms:GenerateDataKey'], resources: [operationsKeyArn] },
  ];
}
