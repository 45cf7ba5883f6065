import { beforeEach, expect, test } from 'vitest';
import { type FakeWorld, fakeWorld } from '../support/fake-world';

let world: FakeWorld;
let lines: string[];
beforeEach(() => {
  world = fakeWorld();
  lines = [];
  Object.assign(world.reconcile, { metrics: { teams: ['nlp', 'speech'], write: (line: string) => lines.push(line) } });
});

const newest = (team: string) => lines.map((line) => JSON.parse(line)).findLast((line) => line.Team === team);

test('each tick writes what the team waits for, holds and has spent, in the embedded metric format', async () => {
  const runId = await world.launch();
  await world.tick();
  world.train(`research-${runId}-a001`);
  await world.tick();
  await world.tick();
  const { _aws, ...values } = newest('nlp');
  expect(values).toEqual({
    Environment: 'research',
    Team: 'nlp',
    RunsTraining: 1,
    RunsWaiting: 0,
    InstancesHeld: 2,
    SpendMonthUsd: expect.any(Number),
    RunsFailed: 0,
  });
  expect(values.SpendMonthUsd).toBeGreaterThan(0);
  expect(_aws.CloudWatchMetrics).toEqual([
    {
      Namespace: 'Slipway',
      Dimensions: [['Environment', 'Team']],
      Metrics: Object.keys(values)
        .slice(2)
        .map((Name) => ({ Name, Unit: Name === 'SpendMonthUsd' ? 'None' : 'Count' })),
    },
  ]);
  expect(newest('speech')).toMatchObject({ RunsTraining: 0, InstancesHeld: 0, SpendMonthUsd: 0 });
});

test('a run that failed is counted once', async () => {
  const runId = await world.launch();
  await world.tick();
  world.end(`research-${runId}-a001`, 'Failed', 'ClientError: bad request');
  for (let i = 0; i < 4; i++) await world.tick();
  const failed = lines.map((line) => JSON.parse(line)).filter(({ Team }) => Team === 'nlp');
  expect(failed.reduce((sum, { RunsFailed }) => sum + RunsFailed, 0)).toBe(1);
});

test('fails: what cannot be read is said, and the tick goes on', async () => {
  world.reconcile.store.ofTeam = () => Promise.reject(new Error('throttled'));
  const said: unknown[] = [];
  world.reconcile.log = (_level, message, context) => said.push([message, context]);
  await world.launch();
  await world.tick();
  expect(lines).toEqual([]);
  for (const team of ['nlp', 'speech'])
    expect(said).toContainEqual(['metrics of a team were not written', { team, error: 'Error: throttled' }]);
});
