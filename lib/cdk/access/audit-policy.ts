import { arnOf } from '../../core/contracts/names';
import { HEARTBEAT_OBJECT } from '../../core/contracts/storage';
import { type ExactStatement, logGroupArns, type Place, SHARED_LOG_GROUPS } from './statement';

/** Resources that audit reads, and that control and reconcile read too. All values may be tokens. */
export interface AuditContext extends Place {
  readonly environment: string;
  readonly runTableArn: string;
  readonly checkpointBucketArn: string;
  /** Key of the table and the buckets. */
  readonly keyArn: string;
  /** Keys of teams with a key of their own. @default - none */
  readonly teamKeyArns?: readonly string[];
  /** Key of the queues, the topic and the functions' environment variables. */
  readonly operationsKeyArn: string;
}

/** Audit reads runs, heartbeats and logs, and cannot change anything. */
export function auditStatements(context: AuditContext): ExactStatement[] {
  const { checkpointBucketArn, keyArn, operationsKeyArn } = context;
  return [
    { sid: 'ReadRuns', actions: ['dynamodb:GetItem'], resources: [context.runTableArn] },
    listRuns(context),
    readDescriptors(context),
    ...answerStatements(context),
    distinguishMissing(checkpointBucketArn),
    {
      sid: 'ReadEncrypted',
      actions: ['kms:Decrypt'],
      resources: [keyArn, operationsKeyArn, ...(context.teamKeyArns ?? [])],
    },
  ];
}

/** Reads for answers about runs, in addition to the run table. */
export const answerStatements = (context: AuditContext): ExactStatement[] => [
  {
    sid: 'ReadHeartbeats',
    actions: ['s3:GetObject'],
    resources: [`${context.checkpointBucketArn}/runs/*/${HEARTBEAT_OBJECT}`],
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

/** Lists runs by team, and active runs. */
export const listRuns = ({ runTableArn }: AuditContext): ExactStatement => ({
  sid: 'ListRuns',
  actions: ['dynamodb:Query'],
  resources: [runTableArn, `${runTableArn}/index/*`],
  wildcard: 'The two indexes of the table.',
});

/** Reads the descriptors of the environment's teams. */
export const readDescriptors = (context: AuditContext): ExactStatement => ({
  sid: 'ReadDescriptors',
  actions: ['ssm:GetParameter'],
  resources: [arnOf(context, 'ssm', `parameter/slipway/environments/${context.environment}/*`)],
  wildcard: "The descriptors of the environment's teams.",
});

/** Without this permission, S3 answers 403 instead of 404 for an upload or a heartbeat that does not exist. */
export const distinguishMissing = (...bucketArns: string[]): ExactStatement => ({
  sid: 'TellWhatIsMissing',
  actions: ['s3:ListBucket'],
  resources: bucketArns,
  conditions: { StringLike: { 's3:prefix': ['runs/*'] } },
});
