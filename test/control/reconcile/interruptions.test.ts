import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { GetParameterCommand } from '@aws-sdk/client-ssm';
import { beforeEach, describe, expect, test } from 'vitest';
import { admitRuns } from '../../../lib/control/reconcile/admit-runs';
import { reconcileRun } from '../../../lib/control/reconcile/reconcile-run';
import { serviceError } from '../support/fake-sagemaker';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});
const DAY = 86_400_000;
const HASH = 'a'.repeat(64);
const nameOf = (runId: string, attempt = 1) => `research-${runId}-a00${attempt}`;

async function submit(clientRequestId = HASH): Promise<string> {
  const answer = await world.ask({ action: 'start', runFile: RUN_FILE, clientRequestId });
  if (!answer.ok || !('runId' in answer)) throw new Error(JSON.stringify(answer));
  await world.ask({ action: 'start', runId: answer.runId, confirm: true });
  return answer.runId;
}

describe('a registered run that CloudFormation sends again', () => {
  test('after a year is the run of then, and no second job', async () => {
    const first = await submit();
    await world.settle();
    world.pass(365 * DAY);
    world.expireItems();
    expect(await submit()).toBe(first);
    await world.settle();
    expect(world.sagemaker.live()).toBe(1);
  });

  test('is not taken for the same run that a person launches twice', async () => {
    const first = await submit();
    world.pass(60_000);
    expect(await submit('5f0c6d1e-0000-4000-8000-000000000000')).not.toBe(first);
  });
});

test('an intent that an older version wrote resumes with as many instances', async () => {
  const runId = await world.launch();
  const item = world.table.items.get(`${runId}|INTENT`);
  const document = JSON.parse(item?.document?.S ?? '');
  delete document.spec.compute.spareInstances;
  if (item) item.document = { S: JSON.stringify(document) };
  world.train(nameOf(runId));
  world.commit(runId, 10);
  await world.tick();
  world.end(nameOf(runId), 'Failed', 'InternalServerError: x');
  await world.tick();
  expect(world.sagemaker.job(nameOf(runId, 2)).request.ResourceConfig?.InstanceCount).toBe(2);
});

describe('while the descriptor cannot be read', () => {
  beforeEach(async () => {
    await submit();
    await world.settle();
    world.train(nameOf('pretrain-261121120000'));
    await world.tick();
    world.ssm.on(GetParameterCommand).rejects(serviceError('ThrottlingException', 'Rate exceeded', 400));
    world.pass(120_000);
  });

  test('a stop reaches the job, and the run ends with it', async () => {
    const runId = 'pretrain-261121120000';
    await world.ask({ action: 'stop', runId });
    await world.settle();
    expect(world.sagemaker.calls.stop).toBe(1);
    world.end(nameOf(runId), 'Stopped');
    await world.tick();
    expect(await world.store.find(runId)).toMatchObject({ state: 'stopped' });
  });

  test('the steps that a job committed before it ended are known', async () => {
    const runId = 'pretrain-261121120000';
    world.commit(runId, 10);
    world.end(nameOf(runId), 'Failed', 'InternalServerError: x');
    await world.tick();
    expect(await world.store.find(runId)).toMatchObject({ committed: { step: 10 }, attempt: { phase: 'ended' } });
    expect(world.sagemaker.calls.create).toBe(1);
  });

  test('nothing is stopped and nothing starts', async () => {
    for (let i = 0; i < 24; i++) await world.tick();
    expect(world.sagemaker.calls).toMatchObject({ create: 1, stop: 0 });
  });
});

test('the stop of a run that waits in the queue takes effect before the next tick', async () => {
  world.sagemaker.failCreate({ error: serviceError('ResourceLimitExceeded', 'limit', 400) });
  const runId = await world.launch();
  expect(await world.store.find(runId)).toMatchObject({ state: 'queued' });
  world.pass(60_000);
  await world.ask({ action: 'stop', runId });
  await world.settle();
  expect(await world.store.find(runId)).toMatchObject({ state: 'stopped' });
});

test('a confirmed run that the index shows late starts before the next tick', async () => {
  const runId = await submit();
  const active = world.store.active.bind(world.store);
  let isLate = true;
  world.store.active = async () => {
    const found = isLate ? [] : await active();
    isLate = false;
    return found;
  };
  await world.settle();
  expect(await world.store.find(runId)).toMatchObject({ state: 'pending' });
});

test('confirm without the upload is a refusal also where S3 answers 403', async () => {
  const runFile = RUN_FILE.replace('code: { source: builtin }', 'code: { source: ./src }');
  const code = { sha256: HASH, bytes: 10 };
  const answer = await world.ask({ action: 'start', runFile, clientRequestId: 'own', code });
  if (!answer.ok || !('runId' in answer)) throw new Error(JSON.stringify(answer));
  world.s3.mock.on(HeadObjectCommand).rejects(serviceError('Forbidden', 'UnknownError', 403));
  expect(await world.ask({ action: 'start', runId: answer.runId, confirm: true })).toMatchObject({ ok: false });
});

test('creates that time out do not hold an invocation beyond its limit', async () => {
  const runId = await submit();
  await admitRuns(world.reconcile);
  const began = world.now();
  const timesOut = async () => {
    world.pass(30_000);
    throw serviceError('TimeoutError', 'no answer');
  };
  await reconcileRun(
    {
      ...world.reconcile,
      sagemakerOnce: { send: timesOut } as never,
      remainingMs: () => 110_000 - (world.now() - began),
    },
    runId,
  );
  expect((world.now() - began) / 1000).toBeLessThan(120);
  await world.tick();
  expect(world.sagemaker.jobs.has(nameOf(runId))).toBe(true);
});

test('a run that waits for one that failed is told of at once, and once', async () => {
  const first = await world.launch();
  world.train(nameOf(first));
  world.end(nameOf(first), 'Failed', 'AlgorithmError: exit code: 1');
  world.pass(60_000);
  const second = await world.launch(`${RUN_FILE}after: [${first}]\n`);
  for (let i = 0; i < 12; i++) await world.tick(30);
  const told = world.published.filter((text) => text.includes(second));
  expect(told).toHaveLength(1);
  expect(told[0]).toContain(`waits for ${first}, and ${first} is failed`);
  expect(await world.store.find(second)).toMatchObject({ state: 'queued' });
});

test('what a team used is remembered: its next run comes after the first of another team', async () => {
  world.limits.set('ml.m5.xlarge for training job usage', { value: 2 });
  const first = await world.launch();
  world.train(nameOf(first));
  await world.tick(600);
  const second = await world.launch(RUN_FILE.replace('pretrain', 'again'));
  world.pass(60_000);
  const alias = 'arn:aws:lambda:us-west-2:111122223333:function:slipway-research-control:team-speech';
  const other = await world.ask(
    { action: 'start', runFile: RUN_FILE.replace('pretrain', 'other'), clientRequestId: 'o' },
    alias,
  );
  if (!other.ok || !('runId' in other)) throw new Error(JSON.stringify(other));
  await world.ask({ action: 'start', runId: other.runId, confirm: true }, alias);
  await world.settle();
  const places = await world.ask({ action: 'list' });
  expect('runs' in places && places.runs.find((r) => r.runId === second)?.queuePosition).toBe(2);
  world.end(nameOf(first), 'Completed');
  await world.tick();
  expect(await world.store.find(other.runId)).toMatchObject({ state: 'pending' });
  expect(await world.store.find(second)).toMatchObject({ state: 'queued' });
});

test('status counts how often a run was interrupted, and list leaves it out', async () => {
  const runId = await world.launch();
  const counted = async () => {
    const answer = await world.ask({ action: 'status', runId });
    return 'interruptions' in answer ? answer.interruptions : undefined;
  };
  world.train(nameOf(runId));
  world.commit(runId, 10);
  await world.tick();
  expect(await counted()).toBe(0);
  world.end(nameOf(runId), 'Failed', 'InternalServerError: x');
  for (let i = 0; i < 3; i++) await world.tick();
  expect(await counted()).toBe(1);
  expect(JSON.stringify(await world.ask({ action: 'list' }))).not.toContain('interruptions');
});
