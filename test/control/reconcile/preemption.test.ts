import { beforeEach, expect, test } from 'vitest';
import { askToLeave } from '../../../lib/control/reconcile/queue/preempt-runs';
import { type FakeWorld, fakeWorld, MINUTE, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
  world.limits.set('ml.m5.xlarge for training job usage', { value: 2 });
  world.limits.set('Number of instances across all training jobs', { value: 20 });
});

const nameOf = (runId: string, attempt = 1) => `research-${runId}-a00${attempt}`;
const file = (name: string, priority: number, rest = '') =>
  `${RUN_FILE.replace('name: pretrain', `name: ${name}`)}priority: ${priority}\n${rest}`;
const statusOf = async (runId: string) => {
  const answer = await world.ask({ action: 'status', runId });
  if (!('attempts' in answer)) throw new Error(JSON.stringify(answer));
  return answer;
};
const requestOf = (runId: string, attempt = 1) =>
  world.s3.objects.get(`artifact-bucket/runs/nlp/${runId}/job/${attempt}/hand-over.json`);

async function background(rest = 'preemptible: true\n'): Promise<string> {
  const runId = await world.launch(file('background', 0, rest));
  world.train(nameOf(runId));
  for (let i = 0; i < 13; i++) await world.tick();
  return runId;
}

test('a preemptible run is asked, leaves, waits at its place, and resumes when the other is done', async () => {
  const first = await background();
  const urgent = await world.launch(file('urgent', 1));
  await world.tick(10);
  expect(requestOf(first)).toBeUndefined();
  await world.tick(10);
  expect(JSON.parse(requestOf(first)?.body ?? '{}')).toEqual({
    schema: 1,
    attempt: 1,
    action: 'hand-over',
    reason: `asked to save and make room for ${urgent}`,
  });
  expect(await statusOf(first)).toMatchObject({ state: 'running', handOver: { why: 'preempted', isRead: false } });
  world.commit(first, 40);
  world.end(nameOf(first), 'Failed', 'AlgorithmError: {"slipway":1,"class":"hand-over","code":76}');
  await world.tick();
  expect(world.sagemaker.jobs.has(nameOf(urgent))).toBe(true);
  expect(await statusOf(first)).toMatchObject({ state: 'queued', queuePosition: 1, committedStep: 40 });
  world.end(nameOf(urgent), 'Completed');
  await world.tick();
  const resumed = await statusOf(first);
  expect(resumed.attempts.map((a) => a.trainingJobName)).toEqual([nameOf(first), nameOf(first, 2)]);
  expect(resumed).not.toHaveProperty('handOver');
  expect(world.published.filter((text) => text.includes('docs/runbooks.md#preemption'))).toHaveLength(1);
});

test('the job file says where the driver looks, for preemptible runs alone', async () => {
  const [yes, no] = [await background(), await world.launch(file('other', 0))];
  const fileOf = (runId: string) =>
    JSON.parse(world.s3.objects.get(`artifact-bucket/runs/nlp/${runId}/job/1/job.json`)?.body ?? '{}');
  expect(fileOf(yes).handOverUri).toBe(`s3://artifact-bucket/runs/nlp/${yes}/job/1/hand-over.json`);
  world.end(nameOf(yes), 'Completed');
  await world.tick();
  expect(fileOf(no)).not.toHaveProperty('handOverUri');
});

test('a run that is not preemptible is left alone', async () => {
  const first = await background('');
  await world.launch(file('urgent', 1));
  for (let i = 0; i < 10; i++) await world.tick();
  expect(requestOf(first)).toBeUndefined();
  expect(world.sagemaker.live()).toBe(1);
});

test('a job that does not leave is stopped after the grace time', async () => {
  const first = await background();
  await world.launch(file('urgent', 1));
  await world.tick(15);
  await world.tick(10);
  expect(world.sagemaker.job(nameOf(first)).status).toBe('InProgress');
  world.pass(5 * MINUTE);
  await world.tick();
  expect(world.sagemaker.job(nameOf(first)).status).toBe('Stopping');
});

test('a job is asked although its worker writes at the same moment', async () => {
  const first = await background();
  const seen = await world.store.find(first);
  if (!seen) throw new Error('the run is there');
  await world.store.save({ ...seen, version: seen.version + 1 }, seen, []);
  await askToLeave(world.reconcile, seen, { why: 'preempted', text: 'asked to save and make room for urgent' });
  await world.settle();
  expect(requestOf(first)).toBeDefined();
});

test('another attempt than the one that was meant is not asked', async () => {
  const first = await background();
  const seen = await world.store.find(first);
  if (!seen?.attempt) throw new Error('the run has an attempt');
  const next = { ...seen, version: seen.version + 1, attempt: { ...seen.attempt, number: 2 } };
  await world.store.save(next, seen, []);
  await askToLeave(world.reconcile, seen, { why: 'preempted', text: 'asked to save and make room for urgent' });
  expect((await world.store.find(first))?.attempt?.handOver).toBeUndefined();
});
