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
import {
  chatTopicsSchema,
  ENV,
  metricTeamsSchema,
  preemptionSchema,
  teamSharesSchema,
} from '../../core/contracts/launcher';
import { requireEnv } from '../../core/contracts/names';
import { clientSettings, onceSettings, s3Settings } from '../shared/clients';
import { Deadline, type InvocationContext, LAST_RESERVE_MS } from '../shared/deadline';
import { ServiceQuotaReader } from '../shared/limit-reader';
import { RunStore } from '../shared/run-store';
import type { ReconcileDeps } from './deps';
import { onEvent } from './reconcile';

/** Text of docs/runbooks.md; scripts/build.mjs puts it into the bundle. */
declare const SLIPWAY_RUNBOOKS: string;

/** Clients and names from the function's environment variables. Throws when one is missing. */
export function reconcileDeps(env: NodeJS.ProcessEnv, deadline = new Deadline()): ReconcileDeps {
  const logger = new Logger({ serviceName: 'slipway-reconcile' });
  const clock = { now: () => Date.now(), sleep: (ms: number) => sleep(ms) };
  return {
    environment: requireEnv(env, ENV.environment),
    region: requireEnv(env, 'AWS_REGION'),
    queueUrl: requireEnv(env, ENV.runQueueUrl),
    topicArn: requireEnv(env, ENV.notificationTopicArn),
    docsUrl: env[ENV.docsUrl] || undefined,
    runbooks: typeof SLIPWAY_RUNBOOKS === 'undefined' ? undefined : SLIPWAY_RUNBOOKS,
    eventBusName: env[ENV.eventBusName] || 'default',
    shares: teamSharesSchema.parse(JSON.parse(env[ENV.teamShares] || '{}')),
    chatTopics: chatTopicsSchema.parse(JSON.parse(env[ENV.chatTopics] || '{}')),
    ...metricsOf(env),
    preemption: preemptionSchema.parse(JSON.parse(env[ENV.preemption] || 'null')) ?? undefined,
    sagemaker: deadline.limit(new SageMakerClient(clientSettings)),
    sagemakerOnce: deadline.limit(new SageMakerClient(onceSettings)),
    s3: deadline.limit(new S3Client(s3Settings(env))),
    ssm: deadline.limit(new SSMClient(clientSettings)),
    sqs: deadline.limit(new SQSClient(clientSettings), LAST_RESERVE_MS),
    sns: deadline.limit(new SNSClient(clientSettings)),
    events: deadline.limit(new EventBridgeClient(clientSettings)),
    store: RunStore.fromEnvironment(deadline.limit(new DynamoDBClient(clientSettings)), env),
    limits: new ServiceQuotaReader(deadline.limit(new ServiceQuotasClient(clientSettings)), clock),
    now: () => new Date(),
    sleep: clock.sleep,
    remainingMs: deadline.remainingMs,
    log: (level, message, details) => logger[level](message, details),
  };
}

/** Metric lines are written to stdout directly: `console.log` of the Lambda runtime would prepend a time and an id. */
function metricsOf(env: NodeJS.ProcessEnv): Pick<ReconcileDeps, 'metrics'> {
  const teams = metricTeamsSchema.parse(JSON.parse(env[ENV.metricTeams] || '[]'));
  return teams.length === 0 ? {} : { metrics: { teams, write: (line) => void process.stdout.write(`${line}\n`) } };
}

const deadline = new Deadline();
let deps: ReconcileDeps | undefined;

export const handler = (event: unknown, context?: InvocationContext) => {
  deadline.begin(context);
  deps ??= reconcileDeps(process.env, deadline);
  return onEvent(deps, event);
};
