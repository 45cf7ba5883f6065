import { UpdateTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import { beforeEach, describe, expect, test } from 'vitest';
import { serviceError } from '../support/fake-sagemaker';
import { ALIAS, type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

const KEPT_FILE = RUN_FILE.replace('instanceCount: 2', 'instanceCount: 2, keepAliveSeconds: 1800');
const MINUTE = 60_000;

let world: FakeWorld;
let runId: string;
let job: string;

async function begin(runFile: string): Promise<void> {
  world = fakeWorld();
  runId = await world.launch(runFile);
  job = `research-${runId}-a001`;
  world.train(job);
  await world.tick();
}
beforeEach(() => begin(KEPT_FILE));

const read = async () => (await world.store.find(runId)) ?? expect.fail(`no run ${runId}`);
const updates = () => world.sagemaker.mock.commandCalls(UpdateTrainingJobCommand).map(({ args }) => args[0].input);
const release = (alias?: string) => world.ask({ action: 'release', runId }, alias);

/** The run is stopped after ten minutes of training, and ten minutes have gone since. Returns what it has spent without the pool, USD. */
async function stopAndWait(): Promise<number> {
  world.pass(10 * MINUTE);
  await world.ask({ action: 'stop', runId });
  await world.tick();
  world.end(job, 'Stopped');
  world.sagemaker.job(job).warmPool = { Status: 'Available' };
  await world.tick();
  const { leftPool, spentUsd, state } = await read();
  expect(state).toBe('stopped');
  world.pass(10 * MINUTE);
  return (spentUsd ?? Number.NaN) - ((leftPool?.usdPerHour ?? Number.NaN) * 1800) / 3600;
}

describe('a warm pool', () => {
  test('is ended by its team, and the run has spent what it was kept', async () => {
    const before = await stopAndWait();
    const pool = (await read()).leftPool ?? expect.fail('no pool');
    const rate = pool.usdPerHour ?? 0;
    expect(rate).toBeGreaterThan(0);
    const kept = world.now() - pool.since;
    expect(kept).toBeGreaterThanOrEqual(10 * MINUTE);
    const answer = await release();
    expect(answer).toEqual({
      ...{ ok: true, runId, trainingJobName: job, released: true, warmPoolStatus: 'Available', reusedBy: null },
      savedUsd: expect.closeTo((rate * (30 * MINUTE - kept)) / (60 * MINUTE), 6),
    });
    expect(updates()).toEqual([{ TrainingJobName: job, ResourceConfig: { KeepAlivePeriodInSeconds: 0 } }]);
    expect((await read()).spentUsd).toBeCloseTo(before + (rate * kept) / (60 * MINUTE), 6);
    expect((await world.store.timeline(runId)).map(({ text }) => text)).toContain(
      `the warm pool of ${job} was released for team nlp`,
    );
  });

  test('is shown by status until it ends', async () => {
    await stopAndWait();
    const { until } = (await read()).leftPool ?? { until: 0 };
    const shown = { until: new Date(until).toISOString(), usdPerHour: expect.any(Number) };
    expect(await world.ask({ action: 'status', runId })).toMatchObject({ warmPool: shown });
    await release();
    expect(await world.ask({ action: 'status', runId })).not.toHaveProperty('warmPool');
  });

  test('asked twice, it is ended once and nothing is booked again', async () => {
    await stopAndWait();
    await release();
    const { version, spentUsd } = await read();
    expect(await release()).toMatchObject({ ok: true, released: false, warmPoolStatus: 'Terminated', savedUsd: null });
    expect(await read()).toMatchObject({ version, spentUsd });
    expect(updates()).toHaveLength(1);
  });

  test('that another job took over is booked as long as it was kept', async () => {
    const before = await stopAndWait();
    const rate = (await read()).leftPool?.usdPerHour ?? 0;
    const warmPool = { Status: 'Reused' as const, ReusedByJob: 'other', ResourceRetainedBillableTimeInSeconds: 300 };
    world.sagemaker.job(job).warmPool = warmPool;
    expect(await release()).toMatchObject({ released: false, warmPoolStatus: 'Reused', reusedBy: 'other' });
    expect((await read()).spentUsd).toBeCloseTo(before + (rate * 5) / 60, 6);
    expect(updates()).toEqual([]);
  });

  test('is taken over by the attempt of a resume, and booked until then', async () => {
    const before = await stopAndWait();
    const pool = (await read()).leftPool ?? expect.fail('no pool');
    await world.ask({ action: 'resume', runId });
    const kept = world.now() - pool.since;
    expect(await read()).toMatchObject({ spentUsd: expect.closeTo(before, 6), leftPool: undefined });
    await world.settle();
    const { spentUsd, attempt, warmPool } = await read();
    expect([attempt?.number, warmPool]).toEqual([2, undefined]);
    expect(spentUsd).toBeCloseTo(before + ((pool.usdPerHour ?? 0) * kept) / (60 * MINUTE), 6);
  });
});

describe('a pool that nobody releases', () => {
  test('is booked as long as it was kept once its period is over, and the run leaves the index then', async () => {
    const before = await stopAndWait();
    const rate = (await read()).leftPool?.usdPerHour ?? 0;
    const active = async () => (await world.store.active()).map((run) => run.runId);
    const warmPool = { Status: 'Reused' as const, ReusedByJob: 'other', ResourceRetainedBillableTimeInSeconds: 300 };
    world.sagemaker.job(job).warmPool = warmPool;
    const { describe } = world.sagemaker.calls;
    await world.tick(10);
    expect(await active()).toEqual([runId]);
    expect(world.sagemaker.calls.describe).toBe(describe);
    await world.tick(15);
    expect((await read()).spentUsd).toBeCloseTo(before + (rate * 5) / 60, 6);
    expect(await active()).toEqual([]);
  });
});

describe('nothing is ended', () => {
  test('where the job was deleted', async () => {
    await stopAndWait();
    world.sagemaker.jobs.delete(job);
    const none = { ok: true, released: false, warmPoolStatus: null, reusedBy: null, savedUsd: null };
    expect(await release()).toMatchObject(none);
  });

  test('where another job takes the pool over between the observation and the call', async () => {
    const before = await stopAndWait();
    const rate = (await read()).leftPool?.usdPerHour ?? 0;
    world.sagemaker.mock.on(UpdateTrainingJobCommand).callsFake(() => {
      const warmPool = { Status: 'Reused' as const, ReusedByJob: 'other', ResourceRetainedBillableTimeInSeconds: 300 };
      world.sagemaker.job(job).warmPool = warmPool;
      throw serviceError('ValidationException', 'No warm pool', 400);
    });
    expect(await release()).toMatchObject({ released: false, warmPoolStatus: 'Reused', reusedBy: 'other' });
    expect((await read()).spentUsd).toBeCloseTo(before + (rate * 5) / 60, 6);
  });

  test.each(['AccessDeniedException', 'ValidationException'])(
    'fails: a refusal (%s) of a pool that is still available is not taken for its end',
    async (name) => {
      await stopAndWait();
      world.sagemaker.mock.on(UpdateTrainingJobCommand).rejects(serviceError(name, 'no', 400));
      await expect(release()).rejects.toThrow('no');
    },
  );

  test('of a run that asked for no warm pool, and SageMaker is not asked', async () => {
    await begin(RUN_FILE);
    await world.ask({ action: 'stop', runId });
    await world.tick();
    world.end(job, 'Stopped');
    await world.tick();
    const described = world.sagemaker.calls.describe;
    expect(await release()).toMatchObject({ ok: true, released: false, warmPoolStatus: null });
    expect(world.sagemaker.calls.describe).toBe(described);
  });

  test('fails: a live job is in its instances', async () => {
    expect(await release()).toMatchObject({
      ok: false,
      issues: [
        {
          rule: 'release/live',
          message: expect.stringContaining(
            `run slipway stop ${runId} --environment research/nlp --region us-west-2 first`,
          ),
        },
      ],
    });
    expect(updates()).toEqual([]);
  });

  test("fails: another team's run does not exist for this one", async () => {
    await stopAndWait();
    const answer = await release(ALIAS.replace(/team-.*/, 'team-speech'));
    expect(answer).toMatchObject({ ok: false, issues: [{ rule: 'run/unknown' }] });
    expect(updates()).toEqual([]);
  });
});
