// GPUs that jobs have found broken: stored from the heartbeat, and told to later jobs.

import { beforeEach, expect, test, vi } from 'vitest';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});
const FILE = RUN_FILE.replace(/compute: \{/, 'compute: { healthCheck: quick,');
const nameOf = (runId: string, attempt = 1) => `research-${runId}-a00${attempt}`;
const uuid = (n: number) => `GPU-00000000-0000-0000-0000-${String(n).padStart(12, '0')}`;
const BROKEN = { host: 'algo-2', kind: 'gpu', gpus: [uuid(1)], reason: 'GPU 1 is lost' };
const HARDWARE =
  'AlgorithmError: {"slipway":1,"class":"hardware","code":75,"host":"algo-2","reason":"GPU 1 is lost"}, exit code: 75';

/** A run whose job reports this and then ends because of its hardware. */
async function breaks(evidence: unknown, file = FILE): Promise<string> {
  const runId = await world.launch(file);
  world.train(nameOf(runId));
  world.s3.put(
    `checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`,
    JSON.stringify({ attempt: 1, step: 5, phase: '', evidence }),
  );
  await world.tick();
  world.end(nameOf(runId), 'Failed', HARDWARE);
  await world.tick();
  await world.tick(30);
  return runId;
}

test('the next attempt, and other runs of the team, do not start on a GPU that was found broken', async () => {
  const runId = await breaks([BROKEN, { host: 'algo-1', kind: 'host', gpus: [uuid(2)], reason: 'slow' }]);
  const known = { bad: [uuid(1)], suspect: [uuid(2)] };
  expect(world.jobFile(runId, 1).knownGpus).toBeUndefined();
  expect(world.jobFile(runId, 2).knownGpus).toEqual(known);
  expect(await world.store.gpuEvidence()).toMatchObject([
    { uuid: uuid(1), team: 'nlp', runId, jobName: nameOf(runId), host: 'algo-2', reason: 'GPU 1 is lost' },
    { uuid: uuid(2), kind: 'host' },
  ]);
  const other = await world.launch(FILE);
  await world.tick();
  expect(world.jobFile(other, 1).knownGpus).toEqual(known);
});

test('a report of another team alone makes a GPU suspect', async () => {
  const about = {
    kind: 'gpu',
    at: world.reconcile.now().getTime(),
    runId: 'x',
    jobName: 'x',
    host: 'x',
    reason: '',
  } as const;
  await world.store.saveGpuEvidence([{ ...about, uuid: uuid(3), team: 'vision' }]);
  const runId = await world.launch(FILE);
  await world.tick();
  expect(world.jobFile(runId, 1).knownGpus).toEqual({ bad: [], suspect: [uuid(3)] });
});

test.each([
  ['a name that is no UUID', [{ ...BROKEN, gpus: ['GPU-1'] }]],
  ['more GPUs than a host has', [{ ...BROKEN, gpus: Array.from({ length: 17 }, (_, n) => uuid(n)) }]],
  ['another kind', [{ ...BROKEN, kind: 'all' }]],
  ['no list', 'all of them'],
])('nothing is remembered of %s', async (_name, evidence) => {
  const runId = await breaks(evidence);
  expect(await world.store.gpuEvidence()).toEqual([]);
  expect(world.jobFile(runId, 2).knownGpus).toBeUndefined();
});

test('an item of the table that cannot be read counts as none', async () => {
  await breaks([BROKEN]);
  for (const item of world.table.items.values()) if (item.runId?.S === 'GPUS') item.document = { S: '{"uuid":1}' };
  expect(await world.store.gpuEvidence()).toEqual([]);
});

test('a table that cannot be read or written stops no run', async () => {
  world.store.gpuEvidence = () => Promise.reject(new Error('table on fire'));
  const runId = await breaks([BROKEN]);
  expect(world.jobFile(runId, 2).knownGpus).toBeUndefined();
  expect(world.sagemaker.live()).toBe(1);
});

test('reports are stored by the next round when another write was in progress', async () => {
  const save = vi.spyOn(world.store, 'saveGpuEvidence').mockResolvedValueOnce(false);
  const runId = await breaks([BROKEN]);
  expect(save.mock.calls.length).toBeGreaterThan(1);
  expect(world.logged.filter((line) => line === 'warn: GPUs are not remembered')).toHaveLength(1);
  expect(world.logged.filter((line) => line === 'info: GPUs are remembered')).toHaveLength(1);
  expect(await world.store.gpuEvidence()).toHaveLength(1);
  expect(world.jobFile(runId, 2).knownGpus).toEqual({ bad: [uuid(1)], suspect: [] });
});

test('a run without a health check is told nothing', async () => {
  const runId = await breaks([BROKEN], RUN_FILE.replace(/compute: \{/, 'compute: { healthCheck: off,'));
  expect(await world.store.gpuEvidence()).toHaveLength(1);
  expect(world.jobFile(runId, 2).knownGpus).toBeUndefined();
});
