// Where money begins to decide: prices of attempts, the cap and the warm pool, each to its boundary.
import { describe, expect, test } from 'vitest';
import {
  addUsd,
  attemptCostUsd,
  billedShare,
  expectedRate,
  judgeSpend,
  leftPool,
  projectedUsd,
  SPOT_SHARE,
  spendRefusal,
  warmPoolUsd,
} from '../../../../lib/core/lifecycle/accounting/spend';
import type { Attempt, CapacityOption, RunRecord } from '../../../../lib/core/lifecycle/record';
import { attempt, HOUR, job, MINUTE, policy, running, T0 } from '../support/records';

const option = (more: Partial<CapacityOption> = {}): CapacityOption => ({
  id: 'as-written',
  instances: [{ instanceType: 'a', instanceCount: 2 }],
  usage: 'training',
  usdPerHour: 100,
  ...more,
});
const record = (of: Partial<CapacityOption> = {}, changes: Partial<RunRecord> = {}, cap: number | null = null) =>
  running({ policy: policy({ capacityOptions: [option(of)], maxCostUsd: cap }), ...changes });
const SPOT = { usage: 'spot' as const };

describe('the price of an hour', () => {
  const rate = (of: Partial<CapacityOption>, changes: Partial<RunRecord> = {}, own: Partial<Attempt> = {}) =>
    expectedRate(record(of, changes), attempt(own));

  test("of spot is what its own attempts were billed, else the catalog's, else a share of the on-demand price", () => {
    expect(rate(SPOT, { spotShare: 0.3 })).toBeCloseTo(30);
    expect(rate({ ...SPOT, expectedUsdPerHour: 44 })).toBe(44);
    expect(rate({ ...SPOT, expectedUsdPerHour: null })).toBe(100 * SPOT_SHARE);
    expect(rate({}, { spotShare: 0.3 })).toBe(100);
    expect(rate({ ...SPOT, usdPerHour: null, expectedUsdPerHour: 44 })).toBeNull();
  });

  test('is that of the alternative which the service chose, where the capacity option has it', () => {
    const alternatives = [{ instanceType: 'b', instanceCount: 1, usdPerHour: 7 }];
    const chosen = (instanceType: string) => ({ selected: { instanceType, instanceCount: 1 } });
    expect(rate({ alternatives }, {}, chosen('b'))).toBe(7);
    expect(rate({ alternatives }, {}, chosen('a'))).toBe(100);
    expect(
      rate({ alternatives: [{ instanceType: 'b', instanceCount: 1, usdPerHour: null }] }, {}, chosen('b')),
    ).toBeNull();
    expect(rate({}, {}, { capacityOptionId: 'gone' })).toBeNull();
  });
});

describe('the cost of an attempt', () => {
  test('is nothing before it trains, what the service bills once it is over, and unknown without a price', () => {
    const cost = (own: Partial<Attempt>, billed?: number, of: Partial<CapacityOption> = {}) =>
      attemptCostUsd(record(of), attempt(own), T0 + HOUR, billed);
    expect(cost({})).toBe(100);
    expect(cost({ trainingStartedAt: undefined })).toBe(0);
    expect(cost({ trainingStartedAt: undefined }, 36)).toBe(1);
    expect(cost({}, 0)).toBe(0);
    expect(cost({}, undefined, { usdPerHour: null })).toBeNull();
    expect(cost({}, 3600, SPOT)).toBe(100);
    expect(cost({}, undefined, SPOT)).toBe(40);
  });

  test('teaches the share of spot from ten minutes of training on, at most the whole', () => {
    const share = (trainedSeconds: number, billed: number | undefined, of: Partial<CapacityOption> = SPOT) =>
      billedShare(record(of, { spotShare: 0.5 }), attempt(), T0 + trainedSeconds * 1000, billed);
    expect(share(600, 180)).toBe(0.3);
    expect(share(599, 180)).toBe(0.5);
    expect(share(600, 900)).toBe(1);
    expect(share(600, undefined)).toBe(0.5);
    expect(share(600, 180, {})).toBe(0.5);
  });
});

describe('the cap', () => {
  // 100 USD an hour; 50 USD to the next checkpoint.
  const judged = (
    spentUsd: number | null,
    newCommit: boolean,
    cap: number | null = 200,
    of: Partial<CapacityOption> = {},
  ) => judgeSpend(record(of, { spentUsd }, cap), attempt({ trainingStartedAt: undefined }), newCommit, T0);

  test('ends the attempt at a commit when the next one would lie beyond it', () => {
    expect(judged(138.33, true)).toBeUndefined();
    expect(judged(138.34, true)).toBe(
      'spent $138.34 of limits.maxCostUsd $200.00, and the time to the next checkpoint would cross it; stopped after a checkpoint',
    );
    expect(judged(138.34, false)).toBeUndefined();
  });

  test('ends it without one just before the cap, as long before as a stop takes', () => {
    expect(judged(188.33, false)).toBeUndefined();
    expect(judged(188.34, false)).toBe(
      'spent $188.34 of limits.maxCostUsd $200.00, which it would cross before it could be stopped later; stopped',
    );
    expect(judged(200, false)).toBe('spent $200.00 of limits.maxCostUsd $200.00; stopped');
  });

  test('does nothing where there is none, or where nobody knows what is spent', () => {
    expect(judged(1e6, true, null)).toBeUndefined();
    expect(judged(null, true)).toBeUndefined();
    expect(judged(1e6, true, 200, { usdPerHour: null })).toBeUndefined();
  });

  test('refuses an attempt that would not reach a checkpoint within it', () => {
    const refused = (spentUsd: number | null, cap: number | null = 200, of: Partial<CapacityOption> = {}) =>
      spendRefusal(record(of, { spentUsd }, cap), 'as-written', T0);
    expect(refused(150)).toBeUndefined();
    expect(refused(150.01)).toContain('spent $150.01 of limits.maxCostUsd $200.00; another attempt');
    expect([refused(1e6, null), refused(null), refused(1e6, 200, { usdPerHour: null })]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('the cost foretold', () => {
  const vitals = {
    loss: null,
    lossAlert: null,
    slowHost: null,
    usualStepsPerHour: null,
    restarts: 0,
    stepsPerHour: 50,
  };
  const foretold = (own: object, totalSteps: number | undefined = 400, of: Partial<CapacityOption> = {}) =>
    projectedUsd(
      running({ policy: policy({ capacityOptions: [option(of)], totalSteps }), spentUsd: 5 }),
      attempt({ progress: { step: 300, phase: '', heartbeatAt: T0, movedAt: T0, vitals, ...own } }),
      T0 + HOUR,
    );

  test('is what is spent and the steps that are left at the speed of now', () => {
    expect(foretold({})).toBe(5 + 100 + 200);
    expect(foretold({ step: 0 })).toBe(5 + 100 + 800);
    expect(foretold({ step: 500 })).toBe(5 + 100);
  });

  test('is unknown without a step, a speed, a price or a length', () => {
    expect(foretold({ step: null })).toBeUndefined();
    expect(foretold({ vitals: undefined })).toBeUndefined();
    expect(foretold({ vitals: { ...vitals, stepsPerHour: 0 } })).toBeUndefined();
    expect(foretold({}, 400, { usdPerHour: null })).toBeUndefined();
    expect(projectedUsd(record(), attempt(), T0)).toBeUndefined();
  });
});

describe('the warm pool', () => {
  const pool = {
    attempt: { number: 1, jobName: 'research-pretrain-a001' },
    usdPerHour: 60,
    since: T0,
    until: T0 + HOUR,
  };

  test('is billed from the end of its job until it is taken over or expires', () => {
    const usd = (until: number, kept = pool) => warmPoolUsd(kept, until);
    expect([T0 - HOUR, T0, T0 + MINUTE, T0 + HOUR, T0 + 9 * HOUR].map((at) => usd(at))).toEqual([0, 0, 1, 60, 60]);
    expect(warmPoolUsd({ ...pool, usdPerHour: null }, T0 + HOUR)).toBeNull();
    expect(warmPoolUsd(undefined, T0)).toBe(0);
  });

  test('is there when the run asked for one and the service keeps it', () => {
    const left = (keepAliveSeconds: number, warmPool?: { isKept: boolean; retainedSeconds: number }) =>
      leftPool(
        running({ policy: policy({ capacityOptions: [option()], keepAliveSeconds }) }),
        attempt(),
        job({ warmPool }),
        T0,
      )?.until;
    expect(left(600, { isKept: true, retainedSeconds: 0 })).toBe(T0 + 600_000);
    expect(left(600, { isKept: false, retainedSeconds: 90 })).toBe(T0 + 90_000);
    expect(left(600)).toBeUndefined();
    expect(left(0, { isKept: true, retainedSeconds: 0 })).toBeUndefined();
  });
});

test('a sum with an unknown part is unknown', () => {
  expect([addUsd(1, 2), addUsd(null, 2), addUsd(1, null)]).toEqual([3, null, null]);
});
