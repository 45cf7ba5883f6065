// The answer about a run, field by field, from a record as reconcile writes it.
import { beforeEach, describe, expect, test } from 'vitest';
import type { StatusAnswer } from '../../../lib/core/contracts/control';
import type { Attempt, RunRecord } from '../../../lib/core/lifecycle/record';
import { type FakeWorld, fakeWorld, MINUTE, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
let runId = '';
beforeEach(async () => {
  world = fakeWorld();
  runId = await world.launch();
  world.train(`research-${runId}-a001`);
  await world.tick();
});

/** Writes over the record what a later observation would have written. */
async function written(changes: Partial<RunRecord>, own: Partial<Attempt> = {}): Promise<RunRecord> {
  const record = await world.store.find(runId);
  if (!record?.attempt) throw new Error('the run has no attempt');
  const next = { ...record, ...changes, attempt: { ...record.attempt, ...own }, version: record.version + 1 };
  expect(await world.store.save(next, record, [])).toBe(true);
  return next;
}
async function status(): Promise<StatusAnswer> {
  const answer = await world.ask({ action: 'status', runId });
  if (!('attempts' in answer)) throw new Error(JSON.stringify(answer));
  return answer;
}
async function listed(): Promise<StatusAnswer | undefined> {
  const answer = await world.ask({ action: 'list' });
  if (!('runs' in answer)) throw new Error(JSON.stringify(answer));
  return answer.runs.find((run) => run.runId === runId);
}
const iso = (at: number) => new Date(at).toISOString();
const vitals = { loss: 2.5, lossAlert: null, slowHost: null, stepsPerHour: 5, usualStepsPerHour: 5, restarts: 0 };
const start = { number: 0, firstStep: 1, firstStepAt: 0, step: 7, stepAt: 0, endedAt: null };

test('of a run that has just begun to train', async () => {
  const at = world.now() - 5 * MINUTE;
  const { spendUsd, ...answer } = await status();
  expect(answer).toEqual({
    ok: true,
    runId,
    name: 'pretrain',
    team: 'nlp',
    state: 'running',
    desiredState: 'run',
    reason: '',
    createdAt: iso(at),
    attempt: 1,
    attempts: [
      {
        number: 1,
        trainingJobName: `research-${runId}-a001`,
        status: 'InProgress',
        secondaryStatus: 'Training',
        firstStep: null,
        lastStep: null,
        reason: '',
        startedAt: iso(at),
        endedAt: null,
        instanceCount: 2,
        gpuHours: 0,
      },
    ],
    committedStep: null,
    step: null,
    stepAt: null,
    loss: null,
    goodput: null,
    progressPercent: 0,
    etaAt: null,
    etaInterval80: null,
    interruptions: 0,
    queuePosition: null,
  });
  // Five minutes of two ml.m5.xlarge.
  expect(spendUsd).toBeGreaterThan(0.01);
  expect(spendUsd).toBeLessThan(0.1);
});

describe('the step', () => {
  const PROGRESS = { step: 7, phase: '', heartbeatAt: 0, movedAt: 0 };

  test('is that of the heartbeat, else the last that was known; its time is that of the newest start with one', async () => {
    await written({}, { lastStep: 5 });
    expect((await listed())?.step).toBe(5);
    const starts = [
      { ...start, stepAt: 60_000 },
      { ...start, number: 1, stepAt: null },
    ];
    await written({}, { lastStep: 5, progress: { ...PROGRESS, vitals, starts } });
    expect(await listed()).toMatchObject({ step: 7, stepAt: iso(60_000), loss: 2.5, goodput: null });
    await written({}, { lastStep: 5, progress: { ...PROGRESS, step: 0 } });
    expect(await listed()).toMatchObject({ step: 0, stepAt: null, loss: null });
  });

  test('of a heartbeat that status reads itself is newer', async () => {
    await written({}, { firstStep: 2, lastStep: 5 });
    world.s3.put(
      `checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`,
      JSON.stringify({ attempt: 1, step: 9, phase: '' }),
    );
    expect(await status()).toMatchObject({ step: 9, attempts: [{ firstStep: 2, lastStep: 9 }] });
    expect(await listed()).toMatchObject({ step: 5 });
    world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`, '{');
    expect(await status()).toMatchObject({ step: 5, attempts: [{ firstStep: 2, lastStep: 5 }] });
  });

  test('is where the job was launched to, whatever the descriptor names today', async () => {
    const heartbeat = `checkpoint-bucket-of-old/runs/nlp/${runId}/heartbeat.json`;
    await written({}, { firstStep: 2, lastStep: 5, files: { heartbeat: `s3://${heartbeat}` } });
    world.s3.put(heartbeat, JSON.stringify({ attempt: 1, step: 9, phase: '' }));
    expect((await status()).step).toBe(9);
  });

  test('of a run that is over is not looked for any more', async () => {
    world.s3.put(
      `checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`,
      JSON.stringify({ attempt: 1, step: 9, phase: '' }),
    );
    await written({ state: 'failed', endedAt: world.now() }, { phase: 'ended', lastStep: 5 });
    expect((await status()).step).toBe(5);
  });
});

describe('what a run may have', () => {
  test.each<[string, Partial<RunRecord>, Partial<StatusAnswer>]>([
    ['tags', { tags: { a: 'b' } }, { tags: { a: 'b' } }],
    ['a note', { note: 'mine' }, { note: 'mine' }],
    ['an empty note', { note: '' }, { note: '' }],
    ['runs that it waits for', { after: ['x'] }, { after: ['x'] }],
  ])('%s', async (_, changes, wanted) => {
    for (const key of Object.keys(wanted)) expect(await listed()).not.toHaveProperty(key);
    await written(changes);
    expect(await listed()).toMatchObject(wanted);
  });

  test('spare instances, of which the live job says how many are left', async () => {
    const { policy } = await written({});
    await written({ policy: { ...policy, spareInstances: 2, preemptible: true } });
    expect(await listed()).toMatchObject({ spareInstances: { left: null, of: 2 }, preemptible: true });
    const progress = { step: 1, phase: '', heartbeatAt: 0, movedAt: 0, vitals: { ...vitals, sparesLeft: 0 } };
    await written({}, { progress });
    expect((await listed())?.spareInstances).toEqual({ left: 0, of: 2 });
    await written({}, { progress, phase: 'ended' });
    expect((await listed())?.spareInstances).toEqual({ left: null, of: 2 });
  });

  test('a request to leave, and whether its driver has read it', async () => {
    const handOver = { why: 'preempted' as const, at: 60_000, text: 'x' };
    await written({}, { handOver });
    expect((await listed())?.handOver).toEqual({ why: 'preempted', at: iso(60_000), isRead: false });
    const progress = { step: 1, phase: '', heartbeatAt: 0, movedAt: 0, vitals: { ...vitals, handOver: true } };
    await written({}, { handOver, progress });
    expect((await listed())?.handOver?.isRead).toBe(true);
    await written({}, { handOver, progress, phase: 'ended' });
    expect(await listed()).not.toHaveProperty('handOver');
  });
});

test('an attempt has the instances that the service chose, and none where its capacity option is gone', async () => {
  await written({}, { selected: { instanceType: 'ml.g5.xlarge', instanceCount: 3 } });
  expect((await listed())?.attempts[0]).toMatchObject({ instanceCount: 3, gpuHours: 0.25 });
  await written({}, { selected: undefined, capacityOptionId: 'gone' });
  const [attempt] = (await listed())?.attempts ?? [];
  expect(attempt).not.toHaveProperty('instanceCount');
  expect(attempt).not.toHaveProperty('gpuHours');
});

test('the GPUs of an ended attempt were held until its end, however late one asks', async () => {
  const selected = { instanceType: 'ml.g5.xlarge', instanceCount: 1 };
  const { attempt } = await written({}, { selected });
  await written({}, { selected, endedAt: (attempt?.trainingStartedAt ?? 0) + 30 * MINUTE });
  world.pass(600 * MINUTE);
  expect((await listed())?.attempts[0]?.gpuHours).toBe(0.5);
});

test('what was spent is that of the attempts that ended, and of the live one so far', async () => {
  await written({ spentUsd: 5 }, { phase: 'ended' });
  expect((await listed())?.spendUsd).toBe(5);
  await written({ spentUsd: 5 }, { phase: 'created' });
  expect((await listed())?.spendUsd).toBeGreaterThan(5);
  await written({ spentUsd: null });
  expect((await listed())?.spendUsd).toBeNull();
});

test('how far and until when: shares to a tenth, and how often it was interrupted counts', async () => {
  const seconds = (minutes: number) => (world.now() - 5 * MINUTE) / 1000 + minutes * 60;
  const starts = [{ number: 0, firstStep: 1, firstStepAt: seconds(0), step: 33, stepAt: seconds(5), endedAt: null }];
  const heartbeat = { at: world.now() / 1000, attempt: 1, step: 33, phase: '', starts };
  world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`, JSON.stringify(heartbeat));
  const steady = await status();
  expect([steady.progressPercent, steady.interruptions]).toEqual([33, 0]);
  const left = Date.parse(steady.etaAt ?? '') - world.now();
  // 67 of 100 steps at 33 in five minutes.
  expect(left / MINUTE).toBeGreaterThan(9.5);
  expect(left / MINUTE).toBeLessThan(12);
  expect(steady.etaInterval80?.map((at) => Date.parse(at) < Date.parse(steady.etaAt ?? ''))).toEqual([true, false]);
  const record = await written({});
  for (const [what, evidence] of [
    ['ranks-restarted', {}],
    ['job-status', { secondaryStatus: 'Interrupted' }],
    ['attempt-ended', {}],
  ] as const) {
    const before = Date.parse((await status()).etaAt ?? '');
    const latest = (await world.store.find(runId)) ?? record;
    await world.store.save({ ...latest, version: latest.version + 1 }, latest, [
      { at: world.now() - 4 * MINUTE, what, text: '', evidence },
    ]);
    expect(Date.parse((await status()).etaAt ?? '')).not.toBe(before);
  }
  expect((await status()).interruptions).toBe(3);
});

test('a list has the newest runs, as many as were asked for, with their places in the queue', async () => {
  world.limits.set('ml.m5.xlarge for training job usage', { value: 2 });
  for (const name of ['b', 'c']) {
    world.pass(1000);
    await world.launch(RUN_FILE.replace('name: pretrain', `name: ${name}`));
  }
  const list = async (request: object) => {
    const answer = await world.ask({ action: 'list', ...request } as never);
    return 'runs' in answer ? answer.runs.map((run) => [run.name, run.queuePosition]) : answer;
  };
  expect(await list({})).toEqual([
    ['c', 2],
    ['b', 1],
    ['pretrain', null],
  ]);
  expect(await list({ limit: 1 })).toEqual([['c', 2]]);
  expect(await list({ limit: 1, states: ['running'] })).toEqual([['pretrain', null]]);
  expect(await list({ limit: 1, search: 'pretr' })).toEqual([['pretrain', null]]);
});
