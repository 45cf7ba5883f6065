import { beforeEach, expect, test } from 'vitest';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
const QUOTA = 'ml.m5.xlarge for training job usage';
const limit = (value: number) => {
  world.limits.set(QUOTA, { value });
  world.limits.set('Number of instances across all training jobs', { value: 20 });
};
beforeEach(() => {
  world = fakeWorld();
});

const ELASTIC = RUN_FILE.replace('instanceCount: 2', 'instanceCount: { min: 1, max: 4 }');
const nameOf = (runId: string, attempt = 1) => `research-${runId}-a00${attempt}`;
const countOf = (runId: string, attempt = 1) =>
  world.sagemaker.job(nameOf(runId, attempt)).request.ResourceConfig?.InstanceCount;
const plain = (count: number) =>
  RUN_FILE.replace('name: pretrain', 'name: other').replace('instanceCount: 2', `instanceCount: ${count}`);

test.each([
  [4, 4],
  [3, 2],
  [1, 1],
])('with a limit of %i it starts on %i instances', async (most, instances) => {
  limit(most);
  const runId = await world.launch(ELASTIC);
  expect(countOf(runId)).toBe(instances);
  expect(await world.ask({ action: 'status', runId })).toMatchObject({ attempts: [{ instanceCount: instances }] });
});

test('a limit below its smallest size refuses it', async () => {
  limit(1);
  const runFile = RUN_FILE.replace('instanceCount: 2', 'instanceCount: { min: 2, max: 4 }');
  const answer = await world.ask({ action: 'start', runFile, clientRequestId: 'a' });
  expect(answer).toMatchObject({ ok: false, issues: [{ rule: 'quota/limit', level: 'error' }] });
});

test('the next attempt has more instances once others have gone, and nobody else gets them', async () => {
  limit(4);
  const other = await world.launch(plain(2));
  world.train(nameOf(other));
  world.pass(1000);
  const runId = await world.launch(ELASTIC);
  expect(countOf(runId)).toBe(2);
  world.train(nameOf(runId));
  await world.tick();
  world.end(nameOf(other), 'Completed');
  await world.tick();
  expect((await world.store.find(runId))?.reservation).toMatchObject({ capacityOptionId: 'as-written' });
  world.commit(runId, 10);
  world.end(nameOf(runId), 'Failed', 'InternalServerError: x');
  await world.tick();
  expect(countOf(runId, 2)).toBe(4);
  const late = await world.launch(plain(2));
  await world.tick();
  expect(world.sagemaker.jobs.has(nameOf(late))).toBe(false);
});

test('others who come to wait get the room back', async () => {
  limit(4);
  const other = await world.launch(plain(2));
  world.train(nameOf(other));
  world.pass(1000);
  const runId = await world.launch(ELASTIC);
  world.train(nameOf(runId));
  world.end(nameOf(other), 'Completed');
  await world.tick();
  const late = await world.launch(plain(2));
  expect(world.sagemaker.jobs.has(nameOf(late))).toBe(true);
  expect((await world.store.find(runId))?.reservation).toBeUndefined();
  world.end(nameOf(runId), 'Failed', 'InternalServerError: x');
  await world.tick();
  expect(countOf(runId, 2)).toBe(2);
});

test('the job file says where the driver looks for a request to go on with more', async () => {
  const runId = await world.launch(ELASTIC);
  expect(world.jobFile(runId, 1)).toMatchObject({ handOverUri: expect.stringContaining('/job/1/hand-over.json') });
});
