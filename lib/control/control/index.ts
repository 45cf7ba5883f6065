import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import type { Context } from 'aws-lambda';
import { ENV_ENVIRONMENT, ENV_RUN_QUEUE_URL } from '../../core/contracts/launcher';
import { requireEnv } from '../../core/contracts/names';
import { clientSettings, s3Settings } from '../shared/clients';
import { Deadline } from '../shared/deadline';
import { ServiceQuotaReader } from '../shared/limit-reader';
import { RunStore } from '../shared/run-store';
import { onRequest } from './control';
import type { ControlDeps } from './deps';
import { presigner } from './presign';
import { readLogPage } from './reads/logs';

/** Clients and names from the function's environment variables. Throws when one is missing. */
export function controlDeps(env: NodeJS.ProcessEnv, deadline = new Deadline()): ControlDeps {
  const s3 = deadline.limit(new S3Client(s3Settings(env)));
  const logs = deadline.limit(new CloudWatchLogsClient({ ...clientSettings, maxAttempts: 5 }));
  const clock = { now: () => Date.now(), sleep: (ms: number) => sleep(ms) };
  return {
    environment: requireEnv(env, ENV_ENVIRONMENT),
    region: requireEnv(env, 'AWS_REGION'),
    queueUrl: requireEnv(env, ENV_RUN_QUEUE_URL),
    ssm: deadline.limit(new SSMClient(clientSettings)),
    s3,
    sagemaker: deadline.limit(new SageMakerClient(clientSettings)),
    sqs: deadline.limit(new SQSClient(clientSettings)),
    store: RunStore.fromEnvironment(deadline.limit(new DynamoDBClient(clientSettings)), env),
    limits: new ServiceQuotaReader(deadline.limit(new ServiceQuotasClient(clientSettings)), clock),
    presign: presigner(s3),
    readLog: (query) => readLogPage(logs, query),
    now: () => new Date(),
    randomSecret: () => randomBytes(32).toString('hex'),
  };
}

const deadline = new Deadline();
let deps: ControlDeps | undefined;

/** Entry point of the control function. */
export const handler = (event: unknown, context: Context) => {
  deadline.begin(context);
  deps ??= controlDeps(process.env, deadline);
  return onRequest(deps, event, context.invokedFunctionArn);
};
