import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { concrete } from '../../lib/simulation/histories/histories';
import { compareQuietLooks, compareScenario, noFiles, SCENARIOS, scenarioOf } from './compare-quiet-looks';
import { LIMITS, run } from './support';

/** Each scenario is played twice; on a busy machine that takes minutes. */
vi.setConfig({ testTimeout: 240_000 });

const SEED = Number(process.env.QUIET_SEED ?? process.env.SLIPWAY_TEST_SEED ?? randomInt(1_000_000_000));
/** All of them are played in test/long/quiet-looks.test.ts. */
const [DRAWN = []] = fc.sample(fc.shuffledSubarray(SCENARIOS, { minLength: 3, maxLength: 3 }), {
  numRuns: 1,
  seed: SEED,
});

test.each(DRAWN)(`%s comes to the same whether quiet looks are skipped or not (QUIET_SEED=${SEED})`, async (name) => {
  await compareScenario(name);
});

test(`drawn histories come to the same (QUIET_SEED=${SEED})`, async () => {
  const drawn = scenarioOf({ random: { runs: 8, faultsPerDay: 30 }, limits: undefined, until: '36h' });
  const skipped: Awaited<ReturnType<typeof compareQuietLooks>>[] = [];
  for (let seed = SEED; seed < SEED + 2; seed++)
    skipped.push(await compareQuietLooks(concrete(drawn, seed, noFiles), seed));
  for (const kind of ['quiet', 'looks', 'passes'] as const)
    expect(Math.max(...skipped.map((one) => one[kind]))).toBeGreaterThan(0);
});

test('most looks at runs that train are quiet; while a fault may touch one of their calls each call is made', async () => {
  const runs = [run('a', { trainsHours: 100 })];
  const calm = await compareQuietLooks(scenarioOf({ runs, until: '48h' }), 1);
  // Two days are 288 looks, of which one an hour lists the checkpoints.
  expect(calm.quiet).toBeGreaterThan(200);
  expect(calm.looks).toBeGreaterThan(40);
  expect(calm.passes).toBeGreaterThan(500);
  const hold = { at: '6h', to: '42h', call: 's3:GetObject', key: '*/nothing*' };
  const of = (fault: object) =>
    compareQuietLooks(scenarioOf({ runs, faults: [{ ...hold, ...fault }], until: '48h' }), 1);
  const touched = await of({ error: 'AccessDenied' });
  expect(touched.quiet).toBeLessThan(calm.quiet / 2);
  expect(touched.looks).toBeGreaterThan(calm.looks + calm.quiet / 2);
  // Where an answer may come late, the function is called.
  const late = await of({ takesSeconds: 5 });
  expect(late.quiet).toBe(touched.quiet);
  expect(late.looks).toBeLessThan(calm.looks / 2);
});

test('looks at a run that waits in the queue come to the same, also where their read fails', async () => {
  const runs = [run('a', { trainsHours: 10 }), run('b', { at: '5m', trainsHours: 1 })];
  const limits = { ...LIMITS, 'Number of instances across all training jobs': 4 };
  const calm = await compareQuietLooks(scenarioOf({ runs, limits, until: '16h' }), 1);
  // Ten hours are 120 ticks.
  expect(calm.queued).toBeGreaterThan(100);
  expect(calm.waited).toBeGreaterThan(80);
  const faults = [{ at: '2h', to: '4h', call: 'dynamodb:GetItem', error: 'InternalServerError' }];
  const touched = await compareQuietLooks(scenarioOf({ runs, limits, faults, until: '16h' }), 1);
  expect(touched.queued).toBeGreaterThan(60);
  expect(touched.queued).toBeLessThan(calm.queued);
});

test('passes and looks at elastic runs that wait, and at runs that wait for another one, come to the same', async () => {
  const runs = [
    run('a', { trainsHours: 10 }),
    run('b', { at: '5m', trainsHours: 1, set: { 'compute.instanceCount': { min: 2, max: 4 } } }),
    run('c', { at: '7m', trainsHours: 1, team: 'speech', set: { after: ['a'] } }),
  ];
  const limits = { ...LIMITS, 'Number of instances across all training jobs': 4 };
  const calm = await compareQuietLooks(scenarioOf({ runs, limits, until: '16h' }), 1);
  expect(calm.queued).toBeGreaterThan(60);
  expect(calm.waited).toBeGreaterThan(80);
});
