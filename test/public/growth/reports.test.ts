// Situations of public threads about work and data that grow; the names cite repository and thread, test/public/growth.md lists the outcomes.
import { beforeEach, expect, test } from 'vitest';
import { onEvent } from '../../../lib/control/reconcile/reconcile';
import { RunStore } from '../../../lib/control/shared/run-store';
import { type FakeWorld, fakeWorld, MINUTE } from '../../control/support/fake-world';

const DAY_SECONDS = 86_400;
/** Of an invocation of reconcile, without its own reserve. */
const INVOCATION_MS = 110_000;

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
  world.control.store = world.reconcile.store = new RunStore(world.table.client, 'runs', 400);
});
const beginInvocation = () => {
  const ends = world.now() + INVOCATION_MS;
  world.reconcile.remainingMs = () => Math.max(0, ends - world.now());
  world.reconcile.sleep = async (ms) => {
    world.pass(ms);
    if (world.now() > ends) throw new Error('the invocation has ended');
  };
};

test('Corymbia/eucalyptus#49: with 10,000 active runs each is woken within half an hour', async () => {
  const record = await world.store.find(await world.launch());
  if (!record) throw new Error('no run');
  const runs = Array.from({ length: 10_000 }, (_, i) => ({ ...record, runId: `r${i}` }));
  world.reconcile.store.active = async () => runs;
  const waiting = new Set(runs.map(({ runId }) => runId));
  for (let tick = 0; tick < 6; tick++) {
    beginInvocation();
    await onEvent(world.reconcile, { slipway: 'tick' });
    for (const { body } of world.messages.splice(0)) waiting.delete(JSON.parse(body).runId);
    world.pass(5 * MINUTE - (INVOCATION_MS - (world.reconcile.remainingMs?.() ?? 0)));
  }
  expect(waiting.size).toBe(0);
});

test('jogold/cloudstructs#290: a run ends in its first invocation, however long its uncommitted objects take', async () => {
  const runId = await world.launch();
  for (let step = 1; step <= 300; step++)
    world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/step-${step}/shard-0`, 'half');
  const { s3 } = world.reconcile;
  world.reconcile.s3 = new Proxy(s3, {
    get: (client, name) => {
      // Four seconds for each of 20 simultaneous calls.
      if (name === 'send') world.pass(200);
      const value: unknown = Reflect.get(client, name, client);
      return typeof value === 'function' ? value.bind(client) : value;
    },
  });
  world.end(`research-${runId}-a001`, 'Completed');
  world.pass(5 * MINUTE);
  beginInvocation();
  const Records = [{ messageId: 'm', body: JSON.stringify({ kind: 'run', runId }), eventSource: 'aws:sqs' }];
  await onEvent(world.reconcile, { Records });
  expect((await world.store.find(runId))?.state).toBe('completed');
  expect(world.reconcile.remainingMs?.()).toBeGreaterThan(0);
});

test('gchq/sleeper#238 and bahrmichael/aws-scheduler#1: a run expires on the intended day, and then its items', async () => {
  const runId = await world.launch();
  world.end(`research-${runId}-a001`, 'Completed');
  await world.tick();
  const expiry = (item: string) => Number(world.table.items.get(`${runId}|${item}`)?.expiresAt?.N) / DAY_SECONDS;
  const days = expiry('RUN') - world.now() / 1000 / DAY_SECONDS;
  expect(days).toBeGreaterThan(399.9);
  expect(days).toBeLessThan(401.1);
  expect(expiry('INTENT') - expiry('RUN')).toBe(7);
});
