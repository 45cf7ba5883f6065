import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@aws-lambda-powertools/logger';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { S3Client } from '@aws-sdk/client-s3';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { SNSClient } from '@aws-sdk/client-sns';
import { SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import { requireEnv } from '../../contracts/env';
import {
  ENV_ENVIRONMENT,
  ENV_EVENT_BUS_NAME,
  ENV_NOTIFICATION_TOPIC_ARN,
  ENV_RUN_QUEUE_URL,
  ENV_RUN_TABLE,
  ENV_TEAM_SHARES,
  teamSharesSchema,
} from '../../contracts/launcher';
import { clientSettings, onceSettings, s3Settings } from '../shared/clients';
import { ServiceQuotaReader } from '../shared/limit-reader';
import { RunStore } from '../shared/run-store';
import type { ReconcileDeps } from './deps';
import { onEvent } from './reconcile';

/** Clients and names from the environment of the function. Throws when a name is missing. */
export function reconcileDeps(env: NodeJS.ProcessEnv): ReconcileDeps {
  const logger = new Logger({ serviceName: 'slipway-reconcile' });
  const clock = { now: () => Date.now(), sleep: (ms: number) => sleep(ms) };
  const tableName = requireEnv(env, ENV_RUN_TABLE);
  return {
    environment: requireEnv(env, ENV_ENVIRONMENT),
    region: requireEnv(env, 'AWS_REGION'),
    queueUrl: requireEnv(env, ENV_RUN_QUEUE_URL),
    topicArn: requireEnv(env, ENV_NOTIFICATION_TOPIC_ARN),
    eventBusName: env[ENV_EVENT_BUS_NAME] || 'default',
    shares: teamSharesSchema.parse(JSON.parse(env[ENV_TEAM_SHARES] || '{}')),
    sagemaker: new SageMakerClient(clientSettings),
    sagemakerOnce: new SageMakerClient(onceSettings),
    s3: new S3Client(s3Settings(env)),
    ssm: new SSMClient(clientSettings),
    sqs: new SQSClient(clientSettings),
    sns: new SNSClient(clientSettings),
    events: new EventBridgeClient(clientSettings),
    store: new RunStore(new DynamoDBClient(clientSettings), tableName),
    limits: new ServiceQuotaReader(new ServiceQuotasClient(clientSettings), clock),
    now: () => new Date(),
    sleep: clock.sleep,
    log: (level, message, details) => logger[level](message, details),
  };
}

let deps: ReconcileDeps | undefined;

export const handler = (event: unknown) => {
  deps ??= reconcileDeps(process.env);
  return onEvent(deps, event);
};
