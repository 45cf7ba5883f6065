// Of two writes of a run, the one that loses leaves what the other decided.
import { beforeEach, expect, test } from 'vitest';
import { RunStore } from '../../../lib/control/shared/run-store';
import { askResume, forgetFiles } from '../../../lib/core/lifecycle/intent';
import type { RunRecord } from '../../../lib/core/lifecycle/record';
import { type FakeWorld, fakeWorld } from '../support/fake-world';

let world: FakeWorld;
let store: RunStore;
let runId: string;
beforeEach(async () => {
  world = fakeWorld();
  store = new RunStore(world.table.client, 'runs', 400);
  Object.assign(world.reconcile, { store });
  Object.assign(world.control, { store });
  runId = await world.launch();
  world.train(`research-${runId}-a001`);
  await world.tick();
});

const expiries = () =>
  [...world.table.items.values()]
    .filter((item) => item.runId?.S === runId)
    .map((item) => [item.item?.S, item.expiresAt?.N]);
const found = async () => (await store.find(runId)) as RunRecord;

test('two passes that end a run: its items expire', async () => {
  const live = await found();
  const over: RunRecord = { ...live, version: live.version + 1, state: 'stopped', endedAt: world.now() };
  expect(await store.save(over, live, [])).toBe(true);
  const before = expiries();
  expect(await store.save(over, live, [])).toBe(false);
  expect(expiries()).toEqual(before);
  expect(before.every(([, at]) => at !== undefined)).toBe(true);
});

test('a resume that loses against a deletion: its items expire', async () => {
  world.end(`research-${runId}-a001`, 'Stopped');
  await world.tick();
  const over = await found();
  const forgotten = forgetFiles(over, world.now());
  const resumed = askResume(over, world.now());
  if (!forgotten || !resumed) throw new Error('the run is over');
  expect(await store.save(forgotten.record, over, forgotten.events)).toBe(true);
  const before = expiries();
  expect(await store.save(resumed.record, over, resumed.events)).toBe(false);
  expect(expiries()).toEqual(before);
});
