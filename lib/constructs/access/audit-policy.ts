import { logGroupArns, SHARED_LOG_GROUPS } from './log-group-arns';
import type { ExactStatement } from './statement';

/** What audit reads, and control and reconcile too. All values may be tokens. */
export interface AuditContext {
  readonly partition: string;
  readonly account: string;
  readonly region: string;
  readonly environment: string;
  readonly runTableArn: string;
  readonly checkpointBucketArn: string;
  /** Key of the table and the buckets. */
  readonly keyArn: string;
  /** Keys of teams that have one of their own. @default - none */
  readonly teamKeyArns?: readonly string[];
  /** Key of the queues, the topic and the functions' own variables. */
  readonly operationsKeyArn: string;
}

/** Audit reads runs, heartbeats and logs, and can change nothing. */
export function auditStatements(context: AuditContext): ExactStatement[] {
  const { checkpointBucketArn, keyArn, operationsKeyArn } = context;
  return [
    { sid: 'ReadRuns', actions: ['dynamodb:GetItem'], resources: [context.runTableArn] },
    listRuns(context),
    readDescriptors(context),
    ...answerStatements(context),
    tellWhatIsMissing(checkpointBucketArn),
    {
      sid: 'ReadEncrypted',
      actions: ['kms:Decrypt'],
      resources: [keyArn, operationsKeyArn, ...(context.teamKeyArns ?? [])],
    },
  ];
}

/** What answers about runs are made from, beside the run table. */
export const answerStatements = (context: AuditContext): ExactStatement[] => [
  {
    sid: 'ReadHeartbeats',
    actions: ['s3:GetObject'],
    resources: [`${context.checkpointBucketArn}/runs/*/heartbeat.json`],
    wildcard: 'Status says the newest step and loss of a live run.',
  },
  {
    sid: 'ReadLogsForTeams',
    actions: ['logs:FilterLogEvents'],
    resources: logGroupArns(context, SHARED_LOG_GROUPS),
    wildcard:
      'Two log groups, which are judged with the ending :*. The function asks for streams of the jobs of one run only.',
  },
];

/** Runs by team, and those that are active. */
export const listRuns = ({ runTableArn }: AuditContext): ExactStatement => ({
  sid: 'ListRuns',
  actions: ['dynamodb:Query'],
  resources: [runTableArn, `${runTableArn}/index/*`],
  wildcard: 'The two indexes of the table.',
});

/** What the teams of the environment are given. */
export const readDescriptors = ({ partition, region, account, environment }: AuditContext): ExactStatement => ({
  sid: 'ReadDescriptors',
  actions: ['ssm:GetParameter'],
  resources: [`arn:${partition}:ssm:${region}:${account}:parameter/slipway/environments/${environment}/*`],
  wildcard: "The descriptors of the environment's teams.",
});

/** Without it S3 answers 403 instead of 404 for an upload or a heartbeat that is not there. */
export const tellWhatIsMissing = (...bucketArns: string[]): ExactStatement => ({
  sid: 'TellWhatIsMissing',
  actions: ['s3:ListBucket'],
  resources: bucketArns,
  conditions: { StringLike: { 's3:prefix': ['runs/*'] } },
});
