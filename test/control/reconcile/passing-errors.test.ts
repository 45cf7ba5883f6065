// Errors that pass must neither end a run, nor keep it from stopping, nor lose where it goes on.
import { PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { beforeEach, describe, expect, test } from 'vitest';
import { createOutcomeOf } from '../../../lib/control/reconcile/effects';
import { onEvent } from '../../../lib/control/reconcile/reconcile';
import { serviceError } from '../support/fake-sagemaker';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});

const nameOf = (runId: string) => `research-${runId}-a001`;
const named = (name: string, more = '') => `${RUN_FILE.replace('name: pretrain', `name: ${name}`)}${more}`;
const throttled = { error: serviceError('ThrottlingException', 'Rate exceeded', 400) };
const aboveQuota = { error: serviceError('ResourceLimitExceeded', 'quota', 400) };

describe('an error with status 400', () => {
  // https://github.com/aws/aws-sdk-js/issues/281, https://github.com/aws/aws-sdk-php/issues/885
  test.each(['RequestTimeout', 'RequestTimeoutException'])('%s leaves open whether a job exists', (name) => {
    expect(createOutcomeOf(serviceError(name, 'x', 400)).kind).toBe('doubtful');
  });

  test.each([
    'RequestThrottled',
    'SlowDown',
    'ThrottledException',
    'LimitExceededException',
    'PriorRequestNotComplete',
  ])('%s made no job, and may be repeated', (name) => {
    expect(createOutcomeOf(serviceError(name, 'x', 400)).kind).toBe('throttled');
  });

  test('of the write of job.json ends no run', async () => {
    const { client } = world.s3;
    let isFailing = true;
    const send = (command: unknown) => {
      const isJobFile = command instanceof PutObjectCommand && command.input.Key?.endsWith('/job.json');
      if (isFailing && isJobFile) throw serviceError('RequestTimeout', 'Idle connections will be closed.', 400);
      return client.send(command as never);
    };
    world.reconcile.s3 = new Proxy(client, {
      get: (target, key) => (key === 'send' ? send : Reflect.get(target, key, target)),
    }) as S3Client;
    const runId = await world.launch();
    expect((await world.store.find(runId))?.state).toBe('submitting');
    isFailing = false;
    await world.tick();
    expect(world.sagemaker.jobs.has(nameOf(runId))).toBe(true);
  });
});

test('a quota that refuses a call after a throttled one returns the run to the queue at once', async () => {
  world.sagemaker.failCreate(throttled, aboveQuota, aboveQuota);
  const runId = await world.launch();
  await world.tick();
  expect(await world.store.find(runId)).toMatchObject({ state: 'queued', admitted: false });
});

test('a run of which all calls were throttled stops at once', async () => {
  world.sagemaker.failCreate(...Array.from({ length: 20 }, () => throttled));
  const runId = await world.launch();
  await world.ask({ action: 'stop', runId });
  await world.settle();
  expect(await world.store.find(runId)).toMatchObject({ state: 'stopped' });
});

test('a run in the queue with several capacity options is stopped although its intent cannot be read', async () => {
  world.limits.set('ml.m5.xlarge for spot training job usage', { value: 2 });
  const spot = RUN_FILE.replace('instanceCount: 2', 'instanceCount: 2, capacity: spot');
  await world.launch(spot);
  world.pass(1000);
  const runId = await world.launch(spot);
  expect(await world.store.find(runId)).toMatchObject({ state: 'queued' });
  const item = world.table.items.get(`${runId}|INTENT`);
  if (item) item.document = { S: '{"spec": 1}' };
  world.store.findIntent = Object.getPrototypeOf(world.store).findIntent;
  Object.assign(world.store, { intents: new Map() });
  await world.ask({ action: 'stop', runId });
  await world.settle();
  await world.tick();
  expect(await world.store.find(runId)).toMatchObject({ state: 'stopped' });
});

test('a run that waited for a quota starts from the newest checkpoint of the run that it names', async () => {
  const source = await world.launch(named('source'));
  world.train(nameOf(source));
  world.commit(source, 10);
  await world.tick();
  world.sagemaker.failCreate(aboveQuota);
  const startFrom = `checkpoints: { startFrom: ${source} }\n`;
  const runId = await world.launch(named('next', startFrom).replace('steps: 100', 'steps: 200'));
  expect((await world.store.find(runId))?.attempt?.resumeFrom?.step).toBe(10);
  // Training goes on, and the trainer keeps the newest checkpoints.
  for (const key of world.s3.objects.keys()) if (key.includes('/step-10/')) world.s3.objects.delete(key);
  world.commit(source, 30);
  for (let i = 0; i < 6; i++) await world.tick();
  expect(JSON.stringify(world.jobFile(runId, 1))).toContain(`${source}/step-30`);
  expect((await world.store.find(runId))?.attempt?.committedAtStart).toBe(30);
});

// Otherwise a tick just before the turn of a run, whose message is handled after it, would never list its checkpoints.
test('what is due for a run is decided by the clock of the tick that woke it', async () => {
  const runId = await world.launch();
  const tickAt = world.now();
  await onEvent(world.reconcile, { slipway: 'tick' });
  const bodies = world.messages.map(({ body }) => JSON.parse(body));
  expect(bodies.find(({ kind }) => kind === 'run')).toEqual({ kind: 'run', runId, tickAt });
});
