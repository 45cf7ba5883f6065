import { expect, test } from 'vitest';
import { clusterUsdPerHour, plannedCostIssues, priceIssues } from '../../../lib/core/admission/index';
import { planRun } from '../../../lib/core/planner/run/plan-run';
import { PLANNABLE, runOf } from '../../support/runs';

const FACTS = { region: 'us-west-2' };
const run = (limits: object = {}, changes: object = {}) =>
  runOf({
    ...PLANNABLE,
    data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
    limits,
    ...changes,
  });
const planned = (): number => {
  const plan = planRun(run(), FACTS);
  return Array.isArray(plan) ? Number.NaN : (plan.usd.onDemand ?? Number.NaN);
};

test('a cap of exactly the planned cost is enough, a cent less is not', () => {
  const usd = planned();
  expect(plannedCostIssues(run({ maxCostUsd: usd }), FACTS)).toEqual([]);
  expect(plannedCostIssues(run({ maxCostUsd: usd - 0.01 }), FACTS)).toMatchObject([{ rule: 'limits/planned-cost' }]);
});

test('a cap below the cost of on-demand instances is a warning for spot, whose price is not known', () => {
  const spot = run({ maxCostUsd: planned() - 1 }, { compute: { ...PLANNABLE.compute, capacity: 'spot' } });
  expect(plannedCostIssues(spot, FACTS)).toMatchObject([
    { level: 'warning', message: expect.stringContaining('is planned to cost on demand, got') },
  ]);
});

test('nothing is said of the planned cost without a cap, without a plan, and without a price', () => {
  expect(plannedCostIssues(run(), FACTS)).toEqual([]);
  const own = { model: undefined, code: { source: './src', entryPoint: 't.py' } };
  expect(plannedCostIssues(run({ maxCostUsd: 1 }, own), FACTS)).toEqual([]);
  const unpriced = { compute: { instanceType: 'ml.p6e-gb200.36xlarge', instanceCount: 2 } };
  expect(plannedCostIssues(run({ maxCostUsd: 1 }, unpriced), { region: 'eu-north-1' })).toEqual([]);
});

test('refuses an unknown price unless a person accepts it, and warns that a cap cannot be applied without one', () => {
  const unpriced = { compute: { instanceType: 'ml.trn2.48xlarge', instanceCount: 1 } };
  expect(priceIssues(run({}, unpriced), FACTS, false)).toMatchObject([{ rule: 'price/unknown' }]);
  expect(priceIssues(run({}, unpriced), FACTS, true)).toEqual([]);
  for (const accepts of [false, true])
    expect(priceIssues(run({ maxCostUsd: 5 }, unpriced), FACTS, accepts)).toMatchObject([
      {
        rule: 'price/unknown',
        level: 'warning',
        path: 'limits.maxCostUsd',
        message: expect.stringContaining('only limits.maxRuntimeSeconds and limits.maxAttempts end the run'),
      },
    ]);
  expect(priceIssues(run(), FACTS, false)).toEqual([]);
  const own = { ...FACTS, prices: { 'ml.trn2.48xlarge': 40 } };
  expect(priceIssues(run({}, unpriced), own, false)).toEqual([]);
});

test('the cap that is lower is named, and the warm pool that the run leaves counts', () => {
  const usd = planned();
  const guarded = (max: number) => ({ ...FACTS, guardrails: { maxCostPerRunUsd: max } });
  const paths = (maxCostUsd: number, max: number) =>
    plannedCostIssues(run({ maxCostUsd }), guarded(max)).map(({ path }) => path);
  expect(paths(usd - 1, usd - 1)).toEqual(['limits.maxCostUsd']);
  expect(paths(usd - 2, usd - 1)).toEqual(['limits.maxCostUsd']);
  expect(paths(usd - 1, usd - 2)).toEqual(['guardrails.maxCostPerRunUsd']);

  const pool = run({ maxCostUsd: usd }, { compute: { ...PLANNABLE.compute, keepAliveSeconds: 1800 } });
  const [refused] = plannedCostIssues(pool, FACTS);
  const withPool = usd + (clusterUsdPerHour(pool, FACTS)?.usd ?? Number.NaN) / 2;
  expect(refused?.message).toContain(`$${Math.ceil(withPool)} `);
});

test.each([
  ['a run', { guardrails: { maxCostPerRunUsd: 100 } }],
  ['the runs of a team', { budget: { usdPerMonth: 100 } }],
])(
  'refuses an unknown price where the environment limits what %s may cost, even with a cap and a consent',
  (_what, limit) => {
    const limited = { ...FACTS, name: 'research', ...limit };
    const unpriced = { compute: { instanceType: 'ml.trn2.48xlarge', instanceCount: 1 } };
    expect(priceIssues(run({ maxCostUsd: 5 }, unpriced), limited, true)).toMatchObject([
      { rule: 'price/unknown', level: 'error', message: expect.stringContaining('environment research') },
    ]);
    expect(priceIssues(run({ maxCostUsd: 5 }), limited, true)).toEqual([]);
  },
);
