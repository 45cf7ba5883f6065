import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { SNSClient } from '@aws-sdk/client-sns';
import { SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import type { ControlDeps } from '../../../lib/control/control/deps';
import type { GuardDeps } from '../../../lib/control/guards/index';
import type { ReconcileDeps } from '../../../lib/control/reconcile/deps';
import type { RegisteredRunDeps } from '../../../lib/control/registered-run/index';
import { clientSettings, controlSettings, onceSettings } from '../../../lib/control/shared/clients';
import { RESERVE_MS } from '../../../lib/control/shared/deadline';
import { ServiceQuotaReader } from '../../../lib/control/shared/limit-reader';
import { RunStore } from '../../../lib/control/shared/run-store';
import type { EnvironmentSpec } from '../../../lib/core/config/environment-file';
import {
  CONTROL_TIMEOUT_SECONDS,
  FUNCTION_TIMEOUT_SECONDS,
  RECONCILE_TIMEOUT_SECONDS,
  REGISTERED_RUN_TIMEOUT_SECONDS,
} from '../../../lib/core/contracts/launcher';
import type { VirtualClock } from '../core/clock';
import { dateAt } from '../core/epoch';
import { LambdaFunction } from '../core/functions';
import type { Gateway } from '../core/gateway';
import type { FunctionName, Slot } from '../core/invocation';
import type { Random } from '../core/random';
import type { Deployed } from './descriptors';

/** The environment in which the functions run. */
export interface FunctionContext {
  clock: VirtualClock;
  gateway: Gateway;
  random: Random;
  environment: EnvironmentSpec;
  names: Deployed;
  /** Difference between the functions' clock and the services' clock now, ms. */
  skewMs(): number;
  log(level: string, message: string, details: Record<string, unknown>): void;
  /** An upload to a presigned URL. */
  upload(url: string, bytes: number): void;
}

/** The functions as deployed: the handlers with their client settings and timeouts. */
export function functionsOf(context: FunctionContext) {
  const { clock } = context;
  let count = 0;
  const nextId = () => ++count;
  const lambda = <Deps>(name: FunctionName, timeoutSeconds: number, makeDeps: DepsOf<Deps>) =>
    new LambdaFunction(name, clock, { timeoutSeconds, makeDeps, nextId });
  return {
    control: lambda('control', CONTROL_TIMEOUT_SECONDS, controlDeps(context)),
    reconcile: lambda('reconcile', RECONCILE_TIMEOUT_SECONDS, reconcileDeps(context)),
    guards: lambda('guards', FUNCTION_TIMEOUT_SECONDS, guardDeps(context)),
    registeredRun: lambda('registered-run', REGISTERED_RUN_TIMEOUT_SECONDS, registeredRunDeps(context)),
  };
}

/** Creates the dependencies of a function, for each of its execution environments. */
type DepsOf<Deps> = (slot: Slot) => Deps;

/** The clock of the functions, which may differ from that of the services. */
const nowOf =
  ({ clock, skewMs }: FunctionContext) =>
  (): Date =>
    new Date(dateAt(clock.now).getTime() + skewMs());

/** Dependencies that control and reconcile share. */
function sharedDeps(context: FunctionContext) {
  const { clock, gateway, environment, names } = context;
  const now = nowOf(context);
  const own = { now: () => now().getTime(), sleep: (ms: number) => clock.sleep(ms) };
  return (slot: Slot) => ({
    environment: environment.name,
    region: environment.region,
    queueUrl: names.queueUrl,
    ssm: gateway.client(SSMClient, 'ssm', clientSettings, slot),
    s3: gateway.client(S3Client, 's3', clientSettings, slot),
    sqs: gateway.client(SQSClient, 'sqs', clientSettings, slot),
    store: new RunStore(gateway.client(DynamoDBClient, 'dynamodb', clientSettings, slot), names.tableName),
    limits: new ServiceQuotaReader(gateway.client(ServiceQuotasClient, 'servicequotas', clientSettings, slot), own),
    now,
  });
}

function controlDeps(context: FunctionContext): DepsOf<ControlDeps> {
  const shared = sharedDeps(context);
  return (slot) => ({
    ...shared(slot),
    sagemaker: context.gateway.client(SageMakerClient, 'sagemaker', clientSettings, slot),
    presign: async ({ bucket, key }) => ({ url: `https://${bucket}.invalid/${key}`, headers: {} }),
    readLog: async () => ({ events: [] }),
    randomSecret: () => context.random.hex(64),
  });
}

function reconcileDeps(context: FunctionContext): DepsOf<ReconcileDeps> {
  const { clock, gateway, environment, names } = context;
  const shared = sharedDeps(context);
  const workLeft = ({ invocation }: Slot) =>
    Math.max(0, RECONCILE_TIMEOUT_SECONDS * 1000 - (clock.now - (invocation?.startedAt ?? clock.now)) - RESERVE_MS);
  return (slot) => ({
    ...shared(slot),
    topicArn: names.topicArn,
    chatTopics: names.chatTopics,
    eventBusName: 'default',
    docsUrl: environment.notifications.docsUrl,
    shares: Object.fromEntries(Object.entries(environment.teams).map(([team, { share }]) => [team, share])),
    preemption: environment.queue.preemption,
    sagemaker: gateway.client(SageMakerClient, 'sagemaker', clientSettings, slot),
    sagemakerOnce: gateway.client(SageMakerClient, 'sagemaker', onceSettings, slot),
    sns: gateway.client(SNSClient, 'sns', clientSettings, slot),
    events: gateway.client(EventBridgeClient, 'eventbridge', clientSettings, slot),
    sleep: (ms) => clock.sleep(ms),
    remainingMs: () => workLeft(slot),
    log: context.log,
  });
}

function registeredRunDeps({ gateway, upload }: FunctionContext): DepsOf<RegisteredRunDeps> {
  return (slot) => ({
    lambda: gateway.client(LambdaClient, 'lambda', controlSettings, slot),
    s3: gateway.client(S3Client, 's3', clientSettings, slot),
    fetch: (async (url: unknown, { body }: { body?: Uint8Array } = {}) => {
      upload(String(url), body?.length ?? 0);
      return { ok: true, status: 200 };
    }) as unknown as typeof fetch,
  });
}

function guardDeps(context: FunctionContext): DepsOf<GuardDeps> {
  const { clock, gateway, names } = context;
  return (slot) => ({
    dynamo: gateway.client(DynamoDBClient, 'dynamodb', clientSettings, slot),
    sagemaker: gateway.client(SageMakerClient, 'sagemaker', clientSettings, slot),
    tableName: names.tableName,
    now: nowOf(context),
    sleep: (ms) => clock.sleep(ms),
    // A simulated stack is updated or deleted, and never returns.
    isRollback: async () => false,
  });
}

/** The functions of an environment. */
export type Functions = ReturnType<typeof functionsOf>;
