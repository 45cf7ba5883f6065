import { beforeEach, expect, test } from 'vitest';
import { type FakeWorld, fakeWorld } from '../support/fake-world';

const QUOTA = 'ml.m5.xlarge for training job usage';
let world: FakeWorld;
let lines: string[];
beforeEach(() => {
  world = fakeWorld();
  lines = [];
  Object.assign(world.reconcile, { metrics: { teams: [], quotas: true, write: (line: string) => lines.push(line) } });
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
