// What is sent to each service, to the field: requests, notices, messages.

import {
  CreateProcessingJobCommand,
  DescribeProcessingJobCommand,
  DescribeTrainingJobCommand,
  StopProcessingJobCommand,
} from '@aws-sdk/client-sagemaker';
import { PublishCommand } from '@aws-sdk/client-sns';
import { ChangeMessageVisibilityCommand, SendMessageBatchCommand, SendMessageCommand } from '@aws-sdk/client-sqs';
import { beforeEach, describe, expect, test } from 'vitest';
import { planOf } from '../../../lib/control/reconcile/effects';
import { onEvent, runIdOf } from '../../../lib/control/reconcile/reconcile';
import { checkpoint, running } from '../../core/lifecycle/support/records';
import { DESCRIPTOR, runOf } from '../../support/runs';
import { serviceError } from '../support/fake-sagemaker';
import { type FakeWorld, fakeWorld, MINUTE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});
const nameOf = (runId: string) => `research-${runId}-a001`;
const log = () => {
  const lines: [string, string, Record<string, unknown> | undefined][] = [];
  world.reconcile.log = (level, message, context) => lines.push([level, message, context]);
  return lines;
};

describe('a processing run', () => {
  const FILE = `name: tokens
kind: processing
code: { source: builtin-tokenize }
compute: { instanceType: ml.m5.xlarge, instanceCount: 2 }
data: [{ channel: text, s3: 's3://{dataBucket}/text/' }]
output: { s3: 's3://{dataBucket}/teams/{team}/tokens/' }
`;
  let status = 'InProgress';
  beforeEach(() => {
    status = 'InProgress';
    world.sagemaker.mock.on(CreateProcessingJobCommand).resolves({ ProcessingJobArn: 'arn:processing' });
    world.sagemaker.mock.on(DescribeProcessingJobCommand).callsFake(() => ({
      ProcessingJobArn: 'arn:processing',
      ProcessingJobStatus: status,
      CreationTime: new Date(world.now()),
      ProcessingStartTime: new Date(world.now()),
    }));
    world.sagemaker.mock.on(StopProcessingJobCommand).resolves({});
  });

  test('is a processing job, from its request to its stop', async () => {
    const runId = await world.launch(FILE);
    const [created] = world.sagemaker.mock.commandCalls(CreateProcessingJobCommand);
    expect(created?.args[0].input).toMatchObject({ ProcessingJobName: nameOf(runId) });
    expect((await world.store.find(runId))?.attempt).toMatchObject({ phase: 'created', jobArn: 'arn:processing' });
    await world.ask({ action: 'stop', runId });
    await world.settle();
    const stops = world.sagemaker.mock.commandCalls(StopProcessingJobCommand).map((call) => call.args[0].input);
    expect(stops).toEqual([{ ProcessingJobName: nameOf(runId) }]);
    expect(world.sagemaker.calls).toMatchObject({ create: 0, stop: 0 });
  });
});

test('a stop that is not accepted is said with its run and job, and sent again', async () => {
  const lines = log();
  const runId = await world.launch();
  world.train(nameOf(runId));
  await world.tick();
  world.sagemaker.job(nameOf(runId)).status = 'Completing';
  await world.ask({ action: 'stop', runId });
  world.sagemaker.job(nameOf(runId)).status = 'InProgress';
  const { mock } = world.sagemaker;
  const refuse = mock.on((await import('@aws-sdk/client-sagemaker')).StopTrainingJobCommand);
  refuse.rejectsOnce(serviceError('ThrottlingException', 'x', 400));
  await world.settle();
  expect(lines).toContainEqual([
    'warn',
    'stop was not accepted',
    { runId, jobName: nameOf(runId), error: 'ThrottlingException: x' },
  ]);
});

describe('a notice', () => {
  const sent = () => world.sns.commandCalls(PublishCommand).map((call) => call.args[0].input);

  test('by mail says run, cost, what happens next and what to type, and can be filtered by run and team', async () => {
    const runId = await world.launch();
    world.train(nameOf(runId));
    world.commit(runId, 10);
    await world.tick();
    world.end(nameOf(runId), 'Failed', 'ClientError: bad request');
    await world.tick();
    const [mail] = sent();
    expect(mail).toMatchObject({
      TopicArn: 'arn:topic',
      MessageAttributes: {
        notice: { DataType: 'String', StringValue: expect.stringMatching(/^run-failed\//) },
        run: { DataType: 'String', StringValue: runId },
        team: { DataType: 'String', StringValue: 'nlp' },
      },
    });
    const where = '--environment research/nlp --region us-west-2';
    expect(mail?.Subject).toContain(`Slipway: ${runId}: failed: `);
    expect(mail?.Message?.split('\n').slice(1)).toEqual([
      '',
      `run ${runId}, team nlp, environment research, us-west-2`,
      `attempt 1, job ${nameOf(runId)}`,
      'committed step 10',
      expect.stringMatching(/^cost so far: \$0\.\d\d$/),
      'state failed: nothing starts again by itself',
      '',
      `slipway status ${runId} ${where}`,
      `slipway logs ${runId} ${where} --errors`,
      `slipway resume ${runId} ${where}`,
      `job: https://us-west-2.console.aws.amazon.com/sagemaker/home?region=us-west-2#/jobs/${nameOf(runId)}`,
      'runbook: docs/runbooks.md#config',
    ]);
  });

  test('contains what the runbook says to do, or a link to it where the environment has a documentation site', async () => {
    const runbooks = '# Runbooks\n\n## config\n\n**What to do**\n\n1. Run `slipway resume RUN`\n   again.\n\n## data\n';
    const mailOf = async () => {
      const runId = await world.launch();
      world.end(nameOf(runId), 'Failed', 'ClientError: bad request');
      await world.tick();
      return { runId, lines: sent().at(-1)?.Message?.split('\n') ?? [] };
    };
    Object.assign(world.reconcile, { runbooks });
    const { runId, lines } = await mailOf();
    expect(lines.slice(-2)).toEqual(['runbook: docs/runbooks.md#config', `1. Run \`slipway resume ${runId}\` again.`]);
    Object.assign(world.reconcile, { docsUrl: 'https://docs.example.com' });
    expect((await mailOf()).lines.at(-1)).toBe('runbook: https://docs.example.com/runbooks.html#config');
  });

  test('by mail counts what the live job has cost', async () => {
    world.describe({ prices: { 'ml.m5.xlarge': 10 } });
    const runId = await world.launch();
    world.train(nameOf(runId));
    await world.tick();
    world.sagemaker.mock.on(DescribeTrainingJobCommand).rejects(serviceError('AccessDeniedException', 'no', 400));
    for (let i = 0; i < 6; i++) await world.tick(10);
    const [, said = ''] = /^cost so far: \$(.*)$/m.exec(sent().at(-1)?.Message ?? '') ?? [];
    expect(Number(said)).toBeGreaterThan(5);
  });

  test('has a subject that SNS takes: 100 characters of ASCII', async () => {
    const runId = await world.launch();
    world.end(nameOf(runId), 'Failed', `ClientError: ü${'x'.repeat(150)}`);
    await world.tick();
    const [mail] = sent();
    expect(mail?.Subject).toMatch(/^Slipway: [\x20-\x7e]{91}$/);
    expect(mail?.Message).toContain('ClientError: ü');
    expect(mail?.Message).toContain('nothing committed yet');
  });
});

describe('the request of an attempt', () => {
  const spec = (more: object = {}) =>
    runOf({
      name: 'a',
      code: { source: './src' },
      compute: { instanceType: 'ml.p4d.24xlarge', instanceCount: 2 },
      ...more,
    });
  const plan = (more: object = {}, intent: object = {}, record: object = {}) =>
    planOf(
      { region: 'us-west-2' },
      {
        record: running({ runId: 'r', configHash: 'c', ...record }),
        intent: {
          spec: spec(more),
          code: null,
          driver: { uri: 's3://d/', hash: 'h' },
          secret: 's',
          trainingImageUri: null,
          ...intent,
        },
        descriptor: DESCRIPTOR,
      },
      {
        do: 'create',
        attempt: 2,
        capacityOptionId: 'as-written',
        resumeFrom: checkpoint(9),
      },
    );

  test('begins in S3, or where the service restores the checkpoints to', () => {
    expect(plan({ checkpoints: { mode: 'direct' } }).resumeFrom).toBe(checkpoint(9).uri.replace(/\/$/, ''));
    expect(plan({ checkpoints: { mode: 'managed', localPath: '/opt/ml/c/' } }).resumeFrom).toBe('/opt/ml/c/step-9');
  });

  test('has the image, code and driver of the start, and a secret of its own', () => {
    expect(plan().descriptor.trainingImageUri).toBe(DESCRIPTOR.trainingImageUri);
    expect(plan({}, { trainingImageUri: 'image@1' }).descriptor.trainingImageUri).toBe('image@1');
    expect(plan()).toMatchObject({ driver: { hash: 'h' }, runId: 'r', attempt: 2, configHash: 'c' });
    expect(plan()).not.toHaveProperty('code');
    expect(plan({}, { code: { uri: 'u', sha256: 'x', bytes: 5 } }).code).toEqual({ uri: 'u', sha256: 'x' });
    const secrets = [
      plan().restartSecret,
      plan({}, { secret: 't' }).restartSecret,
      plan({}, {}, { runId: 'q' }).restartSecret,
    ];
    expect(new Set(secrets).size).toBe(3);
    expect(secrets[0]).toMatch(/^[0-9a-f]{64}$/);
  });

  test('says what is left out after a loss, only where something is', () => {
    for (const key of ['skips', 'rollback']) expect(plan()).not.toHaveProperty(key);
    const rolled = { skips: [{ step: 5, batches: 2 }], rollback: { toStep: 5, beforeAttempt: 2 } };
    expect(plan({}, {}, rolled)).toMatchObject(rolled);
  });
});

describe('a tick', () => {
  test('wakes the queue, and runs in batches of ten with a pause between two', async () => {
    for (let i = 0; i < 11; i++) {
      await world.launch();
      world.pass(1000);
    }
    const slept: number[] = [];
    world.reconcile.sleep = async (ms) => {
      slept.push(ms);
    };
    world.sqs.resetHistory();
    await onEvent(world.reconcile, { slipway: 'tick' });
    const batches = world.sqs.commandCalls(SendMessageBatchCommand).map((call) => call.args[0].input.Entries ?? []);
    expect(batches.map((entries) => entries.length)).toEqual([10, 1]);
    expect(batches[0]?.map(({ Id }) => Id)).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    expect(slept).toEqual([250]);
    const [queue] = world.sqs.commandCalls(SendMessageCommand).map((call) => call.args[0].input);
    expect(JSON.parse(queue?.MessageBody ?? '')).toEqual({ kind: 'admit' });
  });

  test('fails: the queue did not take a message', async () => {
    await world.launch();
    world.sqs.on(SendMessageBatchCommand).resolves({ Failed: [{ Id: '0', Code: 'Throttled', SenderFault: false }] });
    await expect(onEvent(world.reconcile, { slipway: 'tick' })).rejects.toThrow(
      'the queue did not take 1 messages: Throttled',
    );
  });
});

describe('messages', () => {
  const record = (messageId: string, body: unknown, receiptHandle?: string) => ({
    messageId,
    body: typeof body === 'string' ? body : JSON.stringify(body),
    receiptHandle,
    eventSource: 'aws:sqs',
  });
  const deliver = (...Records: object[]) => onEvent(world.reconcile, { Records });

  test('that failed come again in twenty seconds, and fail no others', async () => {
    const lines = log();
    const bad = await world.launch();
    world.pass(1000);
    const good = await world.launch();
    const { find } = world.store;
    world.store.find = (runId) =>
      runId === bad ? Promise.reject(new Error('throttled')) : find.call(world.store, runId);
    const answer = await deliver(
      record('m1', { kind: 'run', runId: bad }, 'h1'),
      record('m2', { kind: 'run', runId: good }, 'h2'),
      record('m4', '{'),
    );
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: 'm1' }] });
    const again = world.sqs.commandCalls(ChangeMessageVisibilityCommand).map((call) => call.args[0].input);
    expect(again).toEqual([{ QueueUrl: 'https://queue', ReceiptHandle: 'h1', VisibilityTimeout: 20 }]);
    expect(lines).toContainEqual([
      'error',
      'a message failed and will come again',
      { kind: 'run', runId: bad, error: 'Error: throttled' },
    ]);
    expect(lines).toContainEqual([
      'error',
      'a message that cannot be read was dropped',
      { messageId: 'm4', body: '{' },
    ]);
  });

  test('that fail without a handle, or whose wait cannot be shortened, come again all the same', async () => {
    world.store.find = () => Promise.reject(new Error('throttled'));
    world.sqs.on(ChangeMessageVisibilityCommand).rejects(new Error('no'));
    const message = { kind: 'run', runId: 'pretrain-261121120000' };
    expect(await deliver(record('m1', message))).toEqual({ batchItemFailures: [{ itemIdentifier: 'm1' }] });
    expect(await deliver(record('m1', message, 'h'))).toEqual({ batchItemFailures: [{ itemIdentifier: 'm1' }] });
  });
});

test.each([
  ['research-a-261121120000-a001', 'a-261121120000'],
  ['research-a-261121120000-a1000', 'a-261121120000'],
  ['research-a-261121120000-a01', undefined],
  ['research-a-261121120000', undefined],
  ['other-a-261121120000-a001', undefined],
  ['', undefined],
])('the job %s is of run %s', (name, runId) => {
  expect(runIdOf('research', name)).toBe(runId);
});

describe('the change of state of a job', () => {
  const change = async (detail: object) => {
    world.sqs.resetHistory();
    await onEvent(world.reconcile, {
      source: 'aws.sagemaker',
      'detail-type': 'SageMaker Training Job State Change',
      detail,
    });
    return world.sqs.commandCalls(SendMessageCommand).map((call) => call.args[0].input.MessageBody);
  };

  test('wakes its run, whatever kind of job it is, and nobody for a job of others', async () => {
    const body = JSON.stringify({ kind: 'run', runId: 'a-261121120000' });
    expect(await change({ TrainingJobName: 'research-a-261121120000-a001', TrainingJobStatus: 'Failed' })).toEqual([
      body,
    ]);
    expect(await change({ ProcessingJobName: 'research-a-261121120000-a001', ProcessingJobStatus: 'Failed' })).toEqual([
      body,
    ]);
    expect(await change({ TrainingJobName: 'somebody-else' })).toEqual([]);
    expect(await change({})).toEqual([]);
  });
});

test('a job file that cannot be written is a refusal where access is denied, and is written again otherwise', async () => {
  const { PutObjectCommand } = await import('@aws-sdk/client-s3');
  const isJobFile = (input: { Key?: string }) => input.Key?.endsWith('/job.json') ?? false;
  let error = serviceError('SlowDown', 'x', 503);
  let failures = 1;
  world.s3.mock.on(PutObjectCommand).callsFake((input) => {
    if (isJobFile(input) && failures-- > 0) throw error;
    world.s3.put(`${input.Bucket}/${input.Key}`, String(input.Body));
    return {};
  });
  const lines = log();
  const runId = await world.launch();
  expect(lines).toContainEqual(['warn', 'the job file was not written', { runId, error: 'job.json: SlowDown: x' }]);
  for (let i = 0; i < 2; i++) await world.tick();
  expect((await world.store.find(runId))?.attempt).toMatchObject({ number: 1, phase: 'created' });
  for (const [name, status] of [
    ['AccessDenied', 403],
    ['KMS.DisabledException', 400],
  ] as const) {
    [error, failures] = [serviceError(name, 'x', status), 1];
    world.pass(MINUTE);
    const denied = await world.store.find(await world.launch());
    expect(denied).toMatchObject({ state: 'failed', attempt: { failureClass: 'access' } });
    expect(denied?.reason).toContain(`create was refused: job.json: ${name}: x`);
  }
});
