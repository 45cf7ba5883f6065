import { GetObjectCommand } from '@aws-sdk/client-s3';
import { ListTagsCommand } from '@aws-sdk/client-sagemaker';
import { beforeEach, describe, expect, test } from 'vitest';
import { serviceError } from '../support/fake-sagemaker';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});
const nameOf = (runId: string, attempt = 1) => `research-${runId}-a00${attempt}`;
const heartbeat = (runId: string, step: number) =>
  world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`, JSON.stringify({ attempt: 1, step, phase: '' }));
const ticks = async (count: number, minutes = 5) => {
  for (let i = 0; i < count; i++) await world.tick(minutes);
};

test('a heartbeat that reconcile may not read for a day stops nothing and is told of once', async () => {
  const runId = await world.launch();
  world.train(nameOf(runId));
  heartbeat(runId, 5);
  await world.tick();
  world.s3.mock.on(GetObjectCommand).rejects(serviceError('AccessDenied', 'kms:Decrypt', 403));
  await ticks(48, 30);
  expect(world.sagemaker.calls.stop).toBe(0);
  expect(world.published.filter((text) => text.includes('cannot be read'))).toHaveLength(1);
  expect(world.published[0]).toContain('AccessDenied: kms:Decrypt');
});

test('a failed list of checkpoints.startFrom is asked for again', async () => {
  const first = await world.launch();
  world.train(nameOf(first));
  world.commit(first, 10);
  await world.tick();
  world.end(nameOf(first), 'Completed');
  await world.tick();
  const slowDown = () => serviceError('SlowDown', 'Please reduce your request rate.', 503);
  world.s3.failList(slowDown(), slowDown());
  world.pass(60_000);
  const second = await world.launch(`${RUN_FILE}checkpoints: { startFrom: ${first} }\n`);
  await ticks(1);
  expect(await world.store.find(second)).toMatchObject({ state: 'pending' });
  expect(world.jobFile(second, 1).checkpoints.resumeFrom).toContain(`${first}/step-10`);
});

describe('whose job it is', () => {
  test('is read from the job itself: tags that come late leave no live job alone', async () => {
    world.sagemaker.failCreate('lose-after');
    world.sagemaker.mock.on(ListTagsCommand).resolves({ Tags: [] });
    const runId = await world.launch();
    await ticks(3);
    expect(await world.store.find(runId)).toMatchObject({ state: 'pending', attempt: { phase: 'created' } });
  });

  test("fails: somebody else's job has the name; a resume takes the next one", async () => {
    const taken = nameOf('pretrain-261121120000');
    world.sagemaker.jobs.set(taken, {
      request: { TrainingJobName: taken } as never,
      status: 'InProgress',
      secondaryStatus: 'Training',
      createdAt: world.now(),
    });
    const runId = await world.launch();
    expect(await world.store.find(runId)).toMatchObject({ state: 'failed', attempt: { failureClass: 'collision' } });
    await world.ask({ action: 'resume', runId });
    await world.settle();
    expect(await world.store.find(runId)).toMatchObject({ state: 'resuming', attempt: { jobName: nameOf(runId, 2) } });
    expect(world.sagemaker.job(taken).status).toBe('InProgress');
  });
});

describe('spot without an on-demand quota', () => {
  const SPOT = RUN_FILE.replace('instanceCount: 2 }', 'instanceCount: 2, capacity: spot }')
    .replace('ml.m5.xlarge', 'ml.g5.12xlarge')
    .replace('globalBatchSize: 4', 'globalBatchSize: 8');
  const CAPACITY = 'CapacityError: Unable to provision requested ML compute capacity';

  test('asks for spot again, and for nothing else', async () => {
    world.limits.set('ml.g5.12xlarge for training job usage', { value: 0 });
    world.limits.set('ml.g5.12xlarge for spot training job usage', { value: 8 });
    const runId = await world.launch(SPOT);
    world.end(nameOf(runId), 'Failed', CAPACITY);
    await ticks(6);
    expect(world.sagemaker.job(nameOf(runId, 2)).request.EnableManagedSpotTraining).toBe(true);
  });

  test('goes on demand where the quota allows it, and back to spot when that has none either', async () => {
    world.limits.set('ml.g5.12xlarge for training job usage', { value: 8 });
    const runId = await world.launch(SPOT);
    for (const attempt of [1, 2]) {
      world.end(nameOf(runId, attempt), 'Failed', CAPACITY);
      await ticks(6);
    }
    const asked = [1, 2, 3].map(
      (n) => world.sagemaker.job(nameOf(runId, n)).request.EnableManagedSpotTraining ?? false,
    );
    expect(asked).toEqual([true, false, true]);
  });
});

test('the third checkpoint is listed although the two newest could not be read', async () => {
  const runId = await world.launch();
  world.train(nameOf(runId));
  for (const step of [10, 20, 30, 40]) world.commit(runId, step);
  await world.tick();
  const unreadable =
    'AlgorithmError: {"slipway":1,"class":"checkpoint","code":71,"reason":"step-40: could not be read"}';
  world.end(nameOf(runId), 'Failed', 'InternalServerError: x');
  await world.tick();
  const resumed: string[] = [];
  for (const attempt of [2, 3, 4, 5]) {
    resumed.push(world.jobFile(runId, attempt).checkpoints.resumeFrom.replace(/.*step-/, ''));
    world.train(nameOf(runId, attempt));
    world.end(nameOf(runId, attempt), 'Failed', unreadable);
    await ticks(2, 30);
  }
  expect(resumed).toEqual(['40', '30', '20', '10']);
});
