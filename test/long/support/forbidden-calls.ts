// Thirty calls that change, spend or read data, none of which an auditor may make.
import { controlAliasName } from '../../../lib/core/contracts/launcher';

/** What the calls are about. */
export interface AuditedPlaces {
  account: string;
  stack: string;
  table: string;
  job: string;
  data: string;
  checkpoints: string;
  artifacts: string;
  /** Key of an object of a run in the bucket of artifacts. */
  object: string;
  executionRole: string;
  controlFunction: string;
  team: string;
}

const REGION = 'us-west-2';

/** Words of the AWS CLI. */
export function forbiddenCalls(at: AuditedPlaces): string[][] {
  return [...jobCalls(at), ...dataCalls(at), ...platformCalls(at), ...identityCalls(at)];
}

const jobCalls = ({ job, account, controlFunction, team, executionRole }: AuditedPlaces) => [
  ['sagemaker', 'stop-training-job', '--training-job-name', job],
  ['sagemaker', 'update-training-job', '--training-job-name', job, '--remote-debug-config', 'EnableRemoteDebug=true'],
  ['sagemaker', 'add-tags', '--resource-arn', jobArn(account, job), '--tags', 'Key=slipway:team,Value=other'],
  ['sagemaker', 'delete-tags', '--resource-arn', jobArn(account, job), '--tag-keys', 'slipway:team'],
  [
    ...['sagemaker', 'create-training-job', '--training-job-name', 'training-own', '--role-arn', executionRole],
    ...[
      '--algorithm-specification',
      `TrainingImage=${account}.dkr.ecr.${REGION}.amazonaws.com/own:1,TrainingInputMode=File`,
    ],
    ...['--output-data-config', 'S3OutputPath=s3://own/', '--stopping-condition', 'MaxRuntimeInSeconds=60'],
    ...['--resource-config', 'InstanceType=ml.m5.large,InstanceCount=1,VolumeSizeInGB=1'],
  ],
  ['lambda', 'invoke', '--function-name', `${controlFunction}:${controlAliasName(team)}`, '/dev/null'],
  ['lambda', 'invoke', '--function-name', controlFunction, '/dev/null'],
];
const jobArn = (account: string, job: string) => `arn:aws:sagemaker:${REGION}:${account}:training-job/${job}`;

const dataCalls = ({ data, checkpoints, artifacts, object, table }: AuditedPlaces) => [
  ['s3api', 'get-object', '--bucket', checkpoints, '--key', object, '/dev/null'],
  ['s3api', 'get-object', '--bucket', data, '--key', 'teams/nlp/tokens', '/dev/null'],
  ['s3api', 'put-object', '--bucket', data, '--key', 'teams/nlp/tokens'],
  ['s3api', 'put-object', '--bucket', artifacts, '--key', object],
  ['s3api', 'delete-object', '--bucket', checkpoints, '--key', object],
  ['s3api', 'put-object-tagging', '--bucket', checkpoints, '--key', object, '--tagging', 'TagSet=[]'],
  ['s3api', 'delete-bucket-policy', '--bucket', checkpoints],
  ['s3api', 'put-bucket-versioning', '--bucket', data, '--versioning-configuration', 'Status=Suspended'],
  ['s3api', 'delete-public-access-block', '--bucket', data],
  ['dynamodb', 'put-item', '--table-name', table, '--item', '{"runId":{"S":"x"},"item":{"S":"RUN"}}'],
  ['dynamodb', 'delete-item', '--table-name', table, '--key', '{"runId":{"S":"x"},"item":{"S":"RUN"}}'],
  ['dynamodb', 'delete-table', '--table-name', table],
];

const platformCalls = ({ stack, controlFunction }: AuditedPlaces) => [
  ['cloudformation', 'delete-stack', '--stack-name', stack],
  ['cloudformation', 'update-termination-protection', '--stack-name', stack, '--no-enable-termination-protection'],
  ['lambda', 'update-function-configuration', '--function-name', controlFunction, '--timeout', '1'],
  ['ssm', 'put-parameter', '--name', '/slipway/environments/training/nlp', '--value', '{}', '--overwrite'],
  ['ssm', 'delete-parameter', '--name', '/slipway/environments/training'],
  ['logs', 'delete-log-group', '--log-group-name', '/aws/sagemaker/TrainingJobs'],
  ['events', 'put-events', '--entries', '[{"Source":"own","DetailType":"own","Detail":"{}"}]'],
  [
    ...['service-quotas', 'request-service-quota-increase', '--service-code', 'sagemaker'],
    ...['--quota-code', 'L-09B4A649', '--desired-value', '64'],
  ],
];

const identityCalls = ({ executionRole }: AuditedPlaces) => [
  ['sts', 'assume-role', '--role-arn', executionRole, '--role-session-name', 'audit'],
  ['iam', 'create-access-key', '--user-name', 'auditor'],
  ['iam', 'delete-role', '--role-name', executionRole.split('/').at(-1) ?? ''],
];
