// Starts that are repeated, put off, taken back, or name a run that has nothing left.
import { beforeEach, expect, test } from 'vitest';
import { type FakeWorld, fakeWorld, MINUTE, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});

const start = (more: object = {}) =>
  world.ask({ action: 'start', runFile: RUN_FILE, clientRequestId: 'request', ...more });
const idOf = (answer: object): string => ('runId' in answer ? String(answer.runId) : '');
const tomorrow = () => new Date(world.now() + 24 * 60 * MINUTE).toISOString();
const confirm = async (runId: string) => {
  await world.ask({ action: 'start', runId, confirm: true });
  await world.settle();
};

test('a start that is asked again after its uploads came too late keeps its time', async () => {
  const startAt = tomorrow();
  const runId = idOf(await start({ startAt }));
  for (let i = 0; i < 14; i++) await world.tick();
  expect((await world.store.find(runId))?.state).toBe('failed');
  expect(idOf(await start({ startAt }))).toBe(runId);
  await confirm(runId);
  expect(world.sagemaker.jobs.size).toBe(0);
});

test('a stop that is taken back at once keeps the time of the start', async () => {
  const runId = idOf(await start({ startAt: tomorrow() }));
  await confirm(runId);
  await world.ask({ action: 'stop', runId });
  await world.ask({ action: 'resume', runId });
  await world.settle();
  await world.tick();
  expect(world.sagemaker.jobs.size).toBe(0);
  expect((await world.store.find(runId))?.state).toBe('queued');
});

test('fails: a start time that no record can hold', async () => {
  const answer = await start({ startAt: '9999-01-01T00:00:00.000Z' });
  expect(answer).toMatchObject({ ok: false, issues: [{ message: expect.stringContaining('before the year 2100') }] });
});

test('fails: a resume of a start that was stopped before its uploads, which it would not change', async () => {
  const runId = idOf(await start());
  await world.ask({ action: 'stop', runId });
  expect(await world.ask({ action: 'resume', runId })).toMatchObject({
    ok: false,
    issues: [{ rule: 'run/not-resumable' }],
  });
});

test('a start that waits for a name that no run has says so; its own name it has', async () => {
  const answer = await start({ runFile: `${RUN_FILE}after: [latest:pretrian, latest:pretrain]\n` });
  expect(answer).toMatchObject({
    ok: true,
    issues: [
      { level: 'warning', path: 'after[0]', message: expect.stringContaining('got latest:pretrian; launch it') },
    ],
  });
});

test('fails: a start from a run whose files were deleted', async () => {
  const source = await world.launch();
  const name = `research-${source}-a001`;
  world.train(name);
  world.commit(source, 10);
  await world.tick();
  world.end(name, 'Completed');
  await world.tick();
  expect(await world.ask({ action: 'delete', runId: source, confirm: true })).toMatchObject({ ok: true });
  const next = RUN_FILE.replace('name: pretrain', 'name: next').replace('steps: 100', 'steps: 200');
  const runFile = `${next}checkpoints: { startFrom: ${source} }\n`;
  expect(await start({ runFile, clientRequestId: 'next' })).toMatchObject({
    ok: false,
    issues: [{ path: 'checkpoints.startFrom', rule: 'run/deleted' }],
  });
});
