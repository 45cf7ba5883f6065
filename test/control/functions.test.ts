import { Logger } from '@aws-lambda-powertools/logger';
import { CloudWatchLogsClient, FilterLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { handler as audit } from '../../lib/control/audit';
import { handler as control, controlDeps } from '../../lib/control/control';
import { readDeps } from '../../lib/control/control/deps';
import { handler as reconcile, reconcileDeps } from '../../lib/control/reconcile';
import { mockClient } from '../support/mocked-clients';

const ENVIRONMENT = {
  AWS_REGION: 'us-west-2',
  SLIPWAY_ENVIRONMENT: 'research',
  SLIPWAY_RUN_TABLE: 'slipway-research-runs',
  SLIPWAY_RUN_QUEUE_URL: 'https://queue',
  SLIPWAY_NOTIFICATION_TOPIC_ARN: 'arn:topic',
};
const NOW = Date.UTC(2026, 10, 21);
const dynamo = mockClient(DynamoDBClient);
const logs = mockClient(CloudWatchLogsClient);
const sqs = mockClient(SQSClient);
mockClient(SageMakerClient);

beforeEach(() => {
  for (const mock of [dynamo, logs, sqs]) mock.reset();
  for (const [name, value] of Object.entries(ENVIRONMENT)) vi.stubEnv(name, value);
  dynamo.on(QueryCommand).resolves({ Items: [] });
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const context = (name: string, left = 60_000) =>
  ({
    invokedFunctionArn: `arn:aws:lambda:us-west-2:111122223333:function:slipway-research-${name}:team-nlp`,
    getRemainingTimeInMillis: () => left,
  }) as never;
const signals = () =>
  dynamo.calls().map(({ args }) => (args as unknown as [unknown, { abortSignal?: AbortSignal }?])[1]?.abortSignal);
/** How often a client may ask. */
const triesOf = (client: unknown): Promise<number> => (client as DynamoDBClient).config.maxAttempts();

describe.each([
  ['control', control],
  ['audit', audit],
])('the entry point of %s', (name, handler) => {
  test('answers the team of the alias, and its calls end with the invocation', async () => {
    expect(await handler({ action: 'list' }, context(name))).toMatchObject({ ok: true, runs: [] });
    const [asked] = dynamo.commandCalls(QueryCommand);
    expect(asked?.args[0].input).toMatchObject({ TableName: ENVIRONMENT.SLIPWAY_RUN_TABLE });
    expect(signals().filter((signal) => !(signal instanceof AbortSignal))).toEqual([]);
    expect(await triesOf(asked?.thisValue)).toBe(3);
  });

  test('an invocation without time left asks nothing any more', async () => {
    await handler({ action: 'list' }, context(name, 10_000));
    await vi.waitFor(() => expect(new Set(signals().map((signal) => signal?.aborted))).toEqual(new Set([true])));
  });
});

test.each([
  ['control', controlDeps(ENVIRONMENT)],
  ['audit', readDeps(ENVIRONMENT)],
])('%s reads pages of logs with five tries, as many jobs write at once', async (_, { readLog, now }) => {
  logs
    .on(FilterLogEventsCommand)
    .resolves({ events: [{ logStreamName: 'job/algo-1', timestamp: NOW, message: 'step 1' }] });
  const page = await readLog({ logGroupName: '/jobs', streamPrefix: 'job/', progressOnly: false });
  expect(page.events).toEqual([expect.objectContaining({ message: 'step 1' })]);
  expect(await triesOf(logs.calls()[0]?.thisValue)).toBe(5);
  vi.useFakeTimers({ toFake: ['Date'], now: NOW });
  expect(now()).toEqual(new Date(NOW));
});

test('secrets of control are 64 hexadecimal digits, other ones each time', () => {
  const { randomSecret } = controlDeps(ENVIRONMENT);
  const [one, other] = [randomSecret(), randomSecret()];
  expect(one).toMatch(/^[0-9a-f]{64}$/);
  expect(one).not.toBe(other);
});

describe('reconcile', () => {
  test('its entry point wakes the queue at a tick, within the time of the invocation, which the queue outlives', async () => {
    vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    vi.spyOn(Logger.prototype, 'info').mockImplementation(() => undefined);
    await reconcile({ slipway: 'tick' }, { getRemainingTimeInMillis: () => 60_000 });
    expect(sqs.commandCalls(SendMessageCommand)[0]?.args[0].input).toMatchObject({ QueueUrl: 'https://queue' });
    expect(signals()[0]).toBeInstanceOf(AbortSignal);
    await reconcile({ slipway: 'tick' });
    expect(signals().at(-1)).toBeUndefined();
  });

  test('has defaults for what an environment need not say', () => {
    expect(reconcileDeps(ENVIRONMENT)).toMatchObject({
      environment: 'research',
      region: 'us-west-2',
      topicArn: 'arn:topic',
      eventBusName: 'default',
      shares: {},
      chatTopics: {},
    });
    expect(reconcileDeps(ENVIRONMENT).preemption).toBeUndefined();
  });

  test('takes shares, chat topics, bus and preemption from its environment', () => {
    const preemption = { afterMinutes: 15, leastTrainingMinutes: 30, protectedMinutes: 60 };
    const deps = reconcileDeps({
      ...ENVIRONMENT,
      SLIPWAY_EVENT_BUS_NAME: 'bus',
      SLIPWAY_TEAM_SHARES: '{"nlp":2}',
      SLIPWAY_CHAT_TOPICS: '{"":"arn:chat"}',
      SLIPWAY_PREEMPTION: JSON.stringify(preemption),
    });
    expect(deps).toMatchObject({ eventBusName: 'bus', shares: { nlp: 2 }, chatTopics: { '': 'arn:chat' }, preemption });
  });

  test.each([
    [{}, undefined],
    [{ SLIPWAY_METRIC_TEAMS: '[]' }, undefined],
    [{ SLIPWAY_METRIC_TEAMS: '["nlp"]' }, ['nlp']],
  ])('with %j writes metrics of the teams %j', (env, expected) => {
    expect(reconcileDeps({ ...ENVIRONMENT, ...env }).metrics?.teams).toEqual(expected);
  });

  test('a line of metrics goes to the output as it is, for the agent that reads it', () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    reconcileDeps({ ...ENVIRONMENT, SLIPWAY_METRIC_TEAMS: '["nlp"]' }).metrics?.write('{"_aws":{}}');
    expect(write.mock.calls).toEqual([['{"_aws":{}}\n']]);
  });

  test('creates jobs with one try, and reads with three', async () => {
    const { sagemaker, sagemakerOnce } = reconcileDeps(ENVIRONMENT);
    expect(await triesOf(sagemakerOnce)).toBe(1);
    expect(await triesOf(sagemaker)).toBe(3);
  });

  test.each(['info', 'warn', 'error'] as const)('%s is a line of its log with its details', (level) => {
    const line = vi.spyOn(Logger.prototype, level).mockImplementation(() => undefined);
    reconcileDeps(ENVIRONMENT).log(level, 'a text', { runId: 'x-1' });
    expect(line.mock.calls).toEqual([['a text', { runId: 'x-1' }]]);
  });

  test('reads the clock of the machine and waits on it', () => {
    const { now, sleep } = reconcileDeps(ENVIRONMENT);
    vi.useFakeTimers({ toFake: ['Date'], now: NOW });
    expect(now()).toEqual(new Date(NOW));
    vi.useRealTimers();
    expect(sleep(1)).toBeInstanceOf(Promise);
  });
});
