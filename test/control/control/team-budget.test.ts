import { beforeEach, expect, test } from 'vitest';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
  world.limits.set('ml.m5.xlarge for training job usage', { value: 4 });
  world.limits.set('Number of instances across all training jobs', { value: 20 });
  // Two instances: 20 USD an hour.
  world.describe({ prices: { 'ml.m5.xlarge': 10 }, budget: { usdPerMonth: 30 } });
});

const named = (name: string) => RUN_FILE.replace('name: pretrain', `name: ${name}`);
const start = (name: string) => world.ask({ action: 'start', runFile: named(name), clientRequestId: name });
const messagesOf = (answer: object) =>
  'issues' in answer ? (answer.issues as { level: string; message: string }[]).map(({ message }) => message) : [];
const REFUSED = /^teams\.nlp\.budgetUsdPerMonth: must not be spent: 30 USD this month, got [\d.]+ USD in the ledger/;

async function spend(hours: number): Promise<string> {
  const runId = await world.launch(named('first'));
  world.train(`research-${runId}-a001`);
  for (let passed = 0; passed < hours * 60; passed += 30) await world.tick(30);
  return runId;
}

test('runs start while something is left of the month', async () => {
  await spend(1);
  expect(await start('second')).toMatchObject({ ok: true });
});

test('no run starts once the month is spent; the one that spends goes on', async () => {
  const runId = await spend(2);
  const answer = await start('second');
  expect(answer).toMatchObject({ ok: false });
  expect(messagesOf(answer)[0]).toMatch(REFUSED);
  expect(messagesOf(answer)[0]).toContain('wait until 2026-12-01');
  expect(await world.ask({ action: 'status', runId })).toMatchObject({ state: 'running' });
});

test('a run that waited in the queue is held back, and says why; a run between two attempts is not', async () => {
  const first = await world.launch(named('first'));
  world.train(`research-${first}-a001`);
  world.limits.set('ml.m5.xlarge for training job usage', { value: 2 });
  world.pass(1000);
  const waiting = await world.launch(named('second'));
  for (let i = 0; i < 4; i++) await world.tick(30);
  world.commit(first, 40);
  world.end(`research-${first}-a001`, 'Failed', 'InternalServerError: try again');
  for (let i = 0; i < 4; i++) await world.tick(30);
  expect([...world.sagemaker.jobs.keys()]).toEqual([`research-${first}-a001`, `research-${first}-a002`]);
  world.end(`research-${first}-a002`, 'Completed');
  for (let i = 0; i < 4; i++) await world.tick(30);
  expect(await world.ask({ action: 'status', runId: waiting })).toMatchObject({
    state: 'queued',
    reason: 'waits for 2026-12-01: team nlp has spent its budget of 30 USD a month',
  });
});

test('what was stopped is not resumed; what runs may be resumed, which changes nothing', async () => {
  const runId = await spend(2);
  expect(await world.ask({ action: 'resume', runId })).toMatchObject({ ok: true });
  await world.ask({ action: 'stop', runId });
  await world.tick(5);
  world.end(`research-${runId}-a001`, 'Stopped');
  await world.tick(5);
  const answer = await world.ask({ action: 'resume', runId });
  expect(messagesOf(answer)[0]).toMatch(REFUSED);
});

test('the next month begins with the whole budget', async () => {
  const runId = await spend(2);
  world.end(`research-${runId}-a001`, 'Completed');
  await world.tick(5);
  expect(await start('second')).toMatchObject({ ok: false });
  world.pass(11 * 24 * 3_600_000);
  expect(await start('third')).toMatchObject({ ok: true });
});

test('a team without a budget reads no other runs', async () => {
  world.describe({ prices: { 'ml.m5.xlarge': 10 } });
  await spend(2);
  expect(await start('second')).toMatchObject({ ok: true });
});
