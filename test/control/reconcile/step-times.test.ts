import { beforeEach, describe, expect, test } from 'vitest';
import type { StatusAnswer } from '../../../lib/core/contracts/control';
import { type FakeWorld, fakeWorld, MINUTE, RUN_FILE } from '../support/fake-world';

/** A script that shows its steps only in its log and keeps its own checkpoints, so that the control plane sees no commit. */
const OWN_SCRIPT = RUN_FILE.replace(
  'code: { source: builtin }',
  `code: { source: 's3://artifact-bucket/runs/nlp/code.tar.gz', entryPoint: train.py, sha256: ${'c'.repeat(64)} }\nprogress: { stepRegex: 'step=(\\d+)' }\ncheckpoints: { mode: managed }`,
).replace(/^(model|training):.*\n/gm, '');

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});
const nameOf = (runId: string, attempt = 1) => `research-${runId}-a00${attempt}`;

type Start = [firstStep: number | null, firstMinute: number, step: number | null, minute: number, endedMinute?: number];

/** The driver's heartbeat of now; minutes count from `began`. */
function heartbeat(runId: string, began: number, starts: Start[], { attempt = 1, phase = 'train' } = {}): void {
  const seconds = (minutes: number) => began / 1000 + minutes * 60;
  const newest = starts.at(-1);
  const body = {
    at: world.now() / 1000,
    attempt,
    step: newest?.[2] ?? null,
    phase,
    hosts: 2,
    starts: starts.map(([firstStep, first, step, last, ended], number) => ({
      number,
      firstStep,
      firstStepAt: firstStep === null ? null : seconds(first),
      step,
      stepAt: step === null ? null : seconds(last),
      endedAt: ended === undefined ? null : seconds(ended),
    })),
  };
  world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`, JSON.stringify(body));
}

async function status(runId: string): Promise<StatusAnswer> {
  const answer = await world.ask({ action: 'status', runId });
  if (!('goodput' in answer)) throw new Error(JSON.stringify(answer));
  return answer;
}

describe('a script whose steps are read from its log', () => {
  test('600 steps between two observations are steps and not warm-up', async () => {
    const runId = await world.launch(OWN_SCRIPT);
    const began = world.now();
    world.train(nameOf(runId));
    await world.tick(1);
    world.pass(9 * MINUTE);
    heartbeat(runId, began, [[1, 2, 600, 9.5, 10]]);
    world.end(nameOf(runId), 'Completed');
    await world.tick(0);
    const { goodput, attempts, step, stepAt } = await status(runId);
    expect(goodput).toBeCloseTo(7.5 / 10, 2);
    expect(attempts[0]).toMatchObject({ firstStep: 1, lastStep: 600 });
    expect([step, stepAt]).toEqual([600, new Date(began + 9.5 * MINUTE).toISOString()]);
  });

  test('status has the newest step between two observations of the control plane, with its time, and goodput so far', async () => {
    const runId = await world.launch(OWN_SCRIPT);
    const began = world.now();
    world.train(nameOf(runId));
    heartbeat(runId, began, [[null, 0, null, 0]], { phase: 'start' });
    await world.tick(1);
    expect(await status(runId)).toMatchObject({ step: null, stepAt: null, goodput: null });
    world.pass(3 * MINUTE);
    heartbeat(runId, began, [[1, 2, 46, 3.5]]);
    const live = await status(runId);
    expect(live).toMatchObject({ step: 46, attempts: [{ firstStep: 1, lastStep: 46 }] });
    expect(live.stepAt).toBe(new Date(began + 3.5 * MINUTE).toISOString());
    expect(live.goodput).toBeCloseTo(2 / 4, 2);
  });

  test.each([
    ['with heartbeats that name no step', true],
    ['without any heartbeat', false],
  ])(
    'stopped from outside before a step was seen, %s: goodput and steps are not known',
    async (_how, writesHeartbeats) => {
      const runId = await world.launch(OWN_SCRIPT);
      world.train(nameOf(runId));
      if (writesHeartbeats) heartbeat(runId, world.now(), [[null, 0, null, 0]], { phase: 'start' });
      for (let i = 0; i < 4; i++) await world.tick();
      world.end(nameOf(runId), 'Stopped');
      await world.tick(0);
      expect(await status(runId)).toMatchObject({
        state: 'stopped',
        goodput: null,
        step: null,
        attempts: [{ firstStep: null, lastStep: null }],
      });
    },
  );
});

describe('a restart in place', () => {
  test('keeps the steps before it, and only those that were taken twice are lost', async () => {
    const runId = await world.launch(OWN_SCRIPT);
    const began = world.now();
    world.train(nameOf(runId));
    world.pass(30 * MINUTE);
    // Steps 1-12 with a minute each; the second start goes on from step 11.
    heartbeat(runId, began, [
      [1, 1, 12, 12, 13],
      [11, 15, 25, 29],
    ]);
    await world.tick(0);
    expect((await status(runId)).attempts[0]).toMatchObject({ firstStep: 1, lastStep: 25 });
    world.end(nameOf(runId), 'Completed');
    await world.tick(0);
    const done = await status(runId);
    expect(done.attempts[0]).toMatchObject({ firstStep: 1, lastStep: 25 });
    // 1..10 are kept (9 minutes after the first), 11..25 too (14 minutes): 23 of 30.
    expect(done.goodput).toBeCloseTo(23 / 30, 2);
    const timeline = await world.store.timeline(runId);
    const steps = timeline.filter((e) => ['first-step', 'last-step', 'ranks-restarted'].includes(e.what));
    expect(steps.sort((a, b) => a.at - b.at).map((e) => `${e.what} ${e.text}`)).toEqual([
      'first-step step 1',
      'last-step step 12',
      'ranks-restarted restart in place 1 after step 12',
      'first-step step 11',
      'last-step step 25',
    ]);
  });

  test('is booked once, however often it is looked at', async () => {
    const runId = await world.launch(OWN_SCRIPT);
    const began = world.now();
    world.train(nameOf(runId));
    for (let minute = 1; minute <= 6; minute++) {
      heartbeat(runId, began, [
        [1, 0.2, 12, 0.4, 0.5],
        [11, 0.7, 12 + minute, minute],
      ]);
      await world.tick(1);
    }
    const whats = (await world.store.timeline(runId)).map((e) => e.what);
    expect(whats.filter((what) => /step|ranks/.test(what)).sort()).toEqual([
      'first-step',
      'first-step',
      'last-step',
      'ranks-restarted',
    ]);
  });
});

test('the next attempt of a script with checkpoints of its own says so, and its first step decides what was lost', async () => {
  const runId = await world.launch(OWN_SCRIPT);
  const began = world.now();
  world.train(nameOf(runId));
  world.pass(20 * MINUTE);
  heartbeat(runId, began, [[1, 0, 21, 20]]);
  world.end(nameOf(runId), 'Failed', 'InternalServerError: We encountered an internal error');
  await world.tick(0);
  expect((await status(runId)).reason).toBe('attempt 2 from what the script finds of its own checkpoints');
  world.train(nameOf(runId, 2));
  world.pass(20 * MINUTE);
  heartbeat(runId, began, [[11, 30, 21, 40]], { attempt: 2 });
  const { goodput, attempts } = await status(runId);
  expect(attempts.map((a) => [a.firstStep, a.lastStep])).toEqual([
    [1, 21],
    [11, 21],
  ]);
  // Steps 1..10 of the first attempt end after 9 of its 20 minutes; the second is in its 10th minute of steps.
  expect(goodput).toBeCloseTo((9 + 10) / 40, 1);
});

test('the times of a host whose clock is ten minutes behind are those of S3', async () => {
  const runId = await world.launch(OWN_SCRIPT);
  const began = world.now();
  world.train(nameOf(runId));
  world.pass(10 * MINUTE);
  const [from, to] = [began - 8 * MINUTE, began - 1 * MINUTE].map((at) => at / 1000);
  const start = { number: 0, firstStep: 1, firstStepAt: from, step: 70, stepAt: to, endedAt: to };
  const body = { at: world.now() / 1000 - 600, attempt: 1, step: 70, phase: 'train', starts: [start] };
  world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`, JSON.stringify(body));
  world.end(nameOf(runId), 'Completed');
  await world.tick(0);
  expect((await status(runId)).goodput).toBeCloseTo(7 / 10, 2);
});

test('list shows the attempt that is live', async () => {
  const runId = await world.launch();
  world.train(nameOf(runId));
  world.commit(runId, 10);
  await world.tick();
  world.end(nameOf(runId), 'Failed', 'InternalServerError: We encountered an internal error');
  await world.tick();
  const answer = await world.ask({ action: 'list' });
  if (!('runs' in answer)) throw new Error('no list');
  expect(answer.runs[0]).toMatchObject({ attempt: 2, attempts: [{ trainingJobName: nameOf(runId, 2) }] });
});
