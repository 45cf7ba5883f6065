import { TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { RunStore } from '../../../lib/control/shared/run-store';
import { draws } from '../../support/draws';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

const DAY_MS = 86_400_000;

let world: FakeWorld;
/** Both functions with a table whose runs are kept for that long. */
const keepFor = (days: number) => {
  world = fakeWorld();
  world.control.store = world.reconcile.store = new RunStore(world.table.client, 'runs', days);
};
beforeEach(() => keepFor(400));

/** Days until the items of the run and its request expire, by sort key; null for those that do not. */
const expiries = (runId: string) =>
  Object.fromEntries(
    [...world.table.items.values()]
      .filter((item) => item.runId?.S === runId || item.madeRun?.S === runId)
      .map((item) => [
        item.item?.S?.replace(/^EVENT#.*/, 'EVENT'),
        item.expiresAt?.N === undefined ? null : Math.floor((Number(item.expiresAt.N) * 1000 - world.now()) / DAY_MS),
      ]),
  );
const every = (days: number | null) =>
  expect.toSatisfy((values: object) => Object.values(values).every((v) => v === days));
const end = async (runId: string, attempt = 1) => {
  world.end(`research-${runId}-a00${attempt}`, 'Failed', 'ClientError: bad request');
  await world.tick();
};

describe('the items of a run', () => {
  test('do not expire while it is not over', async () => {
    const runId = await world.launch();
    world.train(`research-${runId}-a001`);
    await world.tick();
    expect(Object.keys(expiries(runId)).sort()).toEqual(['ATTEMPT#0001', 'EVENT', 'INTENT', 'REQUEST', 'RUN']);
    expect(expiries(runId)).toEqual(every(null));
  });

  test('expire 400 days after its end, the record first', async () => {
    const runId = await world.launch();
    await end(runId);
    const { RUN, ...others } = expiries(runId);
    expect(RUN).toBe(400);
    expect(Object.keys(others).sort()).toEqual(['ATTEMPT#0001', 'EVENT', 'INTENT', 'REQUEST']);
    expect(others).toEqual(every(407));
    world.pass(409 * DAY_MS);
    world.expireItems();
    expect(expiries(runId)).toEqual({});
  });

  test('do not expire when the environment keeps them indefinitely', async () => {
    keepFor(0);
    const runId = await world.launch();
    await end(runId);
    expect(expiries(runId)).toEqual(every(null));
  });

  test('lose their expiry when it is resumed, and get a later one at the next end', async () => {
    const runId = await world.launch();
    await end(runId);
    world.pass(300 * DAY_MS);
    expect(await world.ask({ action: 'resume', runId })).toMatchObject({ ok: true });
    expect(expiries(runId)).toEqual(every(null));
    await world.settle();
    world.pass(200 * DAY_MS);
    world.expireItems();
    expect(Object.keys(expiries(runId)).sort()).toEqual([
      'ATTEMPT#0001',
      'ATTEMPT#0002',
      'EVENT',
      'INTENT',
      'REQUEST',
      'RUN',
    ]);
    await end(runId, 2);
    const { RUN, ...others } = expiries(runId);
    expect([RUN, others]).toEqual([400, every(407)]);
  });

  test('keep what a registered run is found by, years after its end', async () => {
    const request = { action: 'start', runFile: RUN_FILE, clientRequestId: 'a'.repeat(64) } as const;
    const first = await world.ask(request);
    if (!first.ok || !('uploads' in first)) throw new Error('refused');
    const { runId } = first;
    await world.ask({ action: 'start', runId, confirm: true });
    await world.settle();
    await end(runId);
    world.pass(2000 * DAY_MS);
    world.expireItems();
    expect(Object.keys(expiries(runId)).sort()).toEqual(['INTENT', 'REQUEST', 'RUN']);
    expect(await world.ask(request)).toMatchObject({ ok: true, runId });
    expect(await world.ask({ action: 'start', runId, confirm: true })).toMatchObject({ ok: true, state: 'failed' });
  });
});

test('a run whose end could not be written keeps its items', async () => {
  const runId = await world.launch();
  const { save } = world.reconcile.store;
  const record = await world.store.find(runId);
  if (!record) throw new Error('no run');
  const over = { ...record, version: record.version + 1, state: 'failed' as const, endedAt: world.now() };
  const isSaved = await save.call(world.reconcile.store, over, { ...record, version: record.version - 1 }, []);
  expect(isSaved).toBe(false);
  expect(expiries(runId)).toEqual(every(null));
});

test('the end of a run with many events continues where an invocation ended', async () => {
  /** Writes that an invocation has time for. */
  const mosts = fc.integer({ min: 4, max: 9 });
  const law = fc.asyncProperty(fc.integer({ min: 0, max: 400 }), mosts, async (events, most) => {
    keepFor(30);
    const runId = await world.launch();
    const intent = world.table.items.get(`${runId}|INTENT`);
    for (let i = 0; i < events; i++) {
      const item = { S: `EVENT#2026-11-21T12:00:00.000Z#${String(i).padStart(6, '0')}.50` };
      world.table.items.set(`${runId}|${item.S}`, { ...intent, item });
    }
    let writes = 0;
    const limited = new Proxy(world.table.client, {
      get: (client, name) => {
        if (name !== 'send') return Reflect.get(client, name, client);
        return (command: TransactWriteItemsCommand) => {
          if (command instanceof TransactWriteItemsCommand && ++writes > most) throw new Error('no time');
          return client.send(command);
        };
      },
    });
    world.reconcile.store = new RunStore(limited, 'runs', 30);
    world.end(`research-${runId}-a001`, 'Failed', 'ClientError: bad request');
    let invocations = 0;
    for (; Object.values(expiries(runId)).includes(null) && invocations < 40; invocations++) {
      writes = 0;
      await world.tick();
    }
    expect(invocations).toBeLessThanOrEqual(Math.ceil(events / 25 / (most - 3)) + 2);
  });
  await fc.assert(law, { numRuns: draws(10) });
});
