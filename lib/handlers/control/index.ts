import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import type { Context } from 'aws-lambda';
import { requireEnv } from '../../contracts/env';
import { ENV_ENVIRONMENT, ENV_RUN_QUEUE_URL, ENV_RUN_TABLE } from '../../contracts/launcher';
import { clientSettings, s3Settings } from '../shared/clients';
import { ServiceQuotaReader } from '../shared/limit-reader';
import { RunStore } from '../shared/run-store';
import { onRequest } from './control';
import type { ControlDeps } from './deps';
import { presigner } from './presign';

/** Clients and names from the environment of the function. Throws when a name is missing. */
export function controlDeps(env: NodeJS.ProcessEnv): ControlDeps {
  const tableName = requireEnv(env, ENV_RUN_TABLE);
  const s3 = new S3Client(s3Settings(env));
  const clock = { now: () => Date.now(), sleep: (ms: number) => sleep(ms) };
  return {
    environment: requireEnv(env, ENV_ENVIRONMENT),
    region: requireEnv(env, 'AWS_REGION'),
    queueUrl: requireEnv(env, ENV_RUN_QUEUE_URL),
    ssm: new SSMClient(clientSettings),
    s3,
    sqs: new SQSClient(clientSettings),
    store: new RunStore(new DynamoDBClient(clientSettings), tableName),
    limits: new ServiceQuotaReader(new ServiceQuotasClient(clientSettings), clock),
    presign: presigner(s3),
    now: () => new Date(),
    randomSecret: () => randomBytes(32).toString('hex'),
  };
}

let deps: ControlDeps | undefined;

export const handler = (event: unknown, context: Context) => {
  deps ??= controlDeps(process.env);
  return onRequest(deps, event, context.invokedFunctionArn);
};
