import { PublishCommand } from '@aws-sdk/client-sns';
import { beforeEach, expect, test } from 'vitest';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

const QUOTA = 'ml.m5.xlarge for training job usage';
let world: FakeWorld;
let lines: string[];
beforeEach(() => {
  world = fakeWorld();
  lines = [];
  Object.assign(world.reconcile, {
    metrics: { teams: [], quotaPercent: 40, write: (line: string) => lines.push(line) },
  });
});
const newest = () => JSON.parse(lines.at(-1) ?? '{}');

test('each tick writes how much of the fullest quota is in use that jobs of the environment hold, and its name', async () => {
  world.limits.set(QUOTA, { value: 5 });
  await world.tick();
  expect(newest().QuotaUsePercent).toBe(0);
  await world.launch();
  await world.tick();
  const { _aws, ...values } = newest();
  expect(values).toEqual({ Environment: 'research', QuotaUsePercent: 40, quota: QUOTA, inUse: 2, limit: 5 });
  expect(_aws.CloudWatchMetrics).toEqual([
    { Namespace: 'Slipway', Dimensions: [['Environment']], Metrics: [{ Name: 'QuotaUsePercent', Unit: 'Percent' }] },
  ]);
});

test('a limit that cannot be read writes nothing: it is not a limit of nothing', async () => {
  world.limits.set(QUOTA, { value: 5 });
  await world.launch();
  await world.tick();
  const before = lines.length;
  world.limits.set(QUOTA, { unknown: 'throttled' });
  await world.tick();
  expect(lines).toHaveLength(before);
});

test('an environment that does not watch its quotas writes and reads nothing', async () => {
  Object.assign(world.reconcile, { metrics: { teams: [], write: (line: string) => lines.push(line) } });
  await world.launch();
  await world.tick();
  expect(lines).toEqual([]);
});

const NOTICE = /^ml\.m5\.xlarge for training job usage \(L-[0-9A-F]+\): 2 of 5 in use \(40 %\)\n/;

test('a quota that fills up is told of by name with its numbers, once until it has emptied', async () => {
  Object.assign(world.reconcile, { chatTopics: { '': 'arn:chat', nlp: 'arn:nlp' } });
  world.limits.set(QUOTA, { value: 5 });
  await world.launch();
  for (let tick = 0; tick < 3; tick++) await world.tick();
  expect(world.published).toEqual([expect.stringMatching(NOTICE), expect.stringContaining('40 %')]);
  expect(world.published[0]).toContain('slipway quota research --region us-west-2 --request --wait');
  expect(JSON.parse(world.published[1] ?? '')).toMatchObject({ version: '1.0', source: 'custom' });
  world.limits.set(QUOTA, { value: 10 });
  for (let tick = 0; tick < 2; tick++) await world.tick();
  expect(world.published).toHaveLength(2);
  world.limits.set(QUOTA, { value: 5 });
  await world.tick();
  expect(world.published.filter((text) => NOTICE.test(text))).toHaveLength(2);
});

test('a quota that goes up and down around the percentage is told of once: it must be below at two ticks in a row', async () => {
  world.limits.set(QUOTA, { value: 5 });
  await world.launch();
  await world.tick();
  const told = world.published.length;
  for (let turn = 0; turn < 3; turn++) {
    world.limits.set(QUOTA, { value: 10 });
    await world.tick();
    world.limits.set(QUOTA, { unknown: 'throttled' });
    await world.tick();
    world.limits.set(QUOTA, { value: 5 });
    await world.tick();
  }
  expect(world.published).toHaveLength(told);
});

test('a quota whose limit cannot be read for a while is not told of again', async () => {
  world.limits.set(QUOTA, { value: 4 });
  world.limits.set('ml.m5.large for training job usage', { value: 100 });
  await world.launch();
  await world.tick();
  await world.launch(RUN_FILE.replace('ml.m5.xlarge', 'ml.m5.large'));
  const told = world.published.length;
  expect(world.published.join('\n')).toContain(QUOTA);
  world.limits.set(QUOTA, { unknown: 'throttled' });
  await world.tick();
  expect(newest()).toMatchObject({ quota: 'ml.m5.large for training job usage' });
  world.limits.set(QUOTA, { value: 4 });
  await world.tick();
  expect(world.published).toHaveLength(told);
});

test('a notice that could not be sent comes with the next tick', async () => {
  world.limits.set(QUOTA, { value: 5 });
  await world.launch();
  world.sns.on(PublishCommand).rejectsOnce(new Error('throttled'));
  await world.tick();
  const sent: string[] = [];
  world.sns.on(PublishCommand).callsFake(({ Message }) => sent.push(Message) && {});
  await world.tick();
  expect(sent).toEqual([expect.stringMatching(NOTICE)]);
});
