import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkpointPlan, endedShare, expectedGoodput, metBySpares } from '../../../../lib/core/planner/run/failures';
import { bestSpares, spareValue } from '../../../../lib/core/planner/run/recovery';

const FIVE_DAYS = 432_000;
const DEVICE_SHARE = 226 / 258;
const P5 = (nodes: number) => ({ nodes, gpusPerNode: 8, networkGbps: 3200 });
const checkpointOf = (nodes: number) => checkpointPlan(12 * 70e9, P5(nodes));

/** A small generator of numbers between 0 and 1. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % (2 ** 31 - 1);
    return state / (2 ** 31 - 1);
  };
}

/** One attempt after the other, failure by failure. */
function simulatedShare(nodes: number, instances: number, attemptSeconds: number): number {
  const random = generator(12_345);
  const wait = () => (-Math.log(random()) * 86_400) / (6.5e-3 * nodes);
  let [failures, met] = [0, 0];
  for (let attempt = 0; attempt < 20_000; attempt++) {
    let left = instances;
    for (let at = wait(); at < attemptSeconds; at += wait()) {
      failures += 1;
      const replaceable = random() < DEVICE_SHARE;
      if (!replaceable || left === 0) break;
      left -= 1;
      met += 1;
    }
  }
  return met / failures;
}

describe('the share of hardware failures that find a spare host', () => {
  test('none without spare hosts', () => {
    expect(metBySpares(512, { instances: 0, attemptSeconds: FIVE_DAYS })).toBe(0);
  });

  test.each([1, 8])('all breakdowns of devices of %i nodes, with more spare hosts than breakdowns', (nodes) => {
    expect(metBySpares(nodes, { instances: 32, attemptSeconds: 3600 })).toBeCloseTo(DEVICE_SHARE, 9);
  });

  test.each([
    [16, 1, FIVE_DAYS],
    [512, 1, FIVE_DAYS],
    [512, 3, FIVE_DAYS],
    [512, 3, 28 * 86_400],
    [2048, 8, 86_400],
  ])('%i nodes with %i spare hosts in attempts of %i s as simulated', (nodes, instances, attemptSeconds) => {
    const share = metBySpares(nodes, { instances, attemptSeconds });
    expect(Math.abs(share - simulatedShare(nodes, instances, attemptSeconds))).toBeLessThan(0.01);
  });
});

const COPIES = { overhead: 0.003, lossSeconds: 10, copies: 2 } as const;

/** Wall time of one failure after the other, by the share of each kind; a course of its own, not the planner's sum. */
function drawnGoodput(nodes: number, cost: number, interval: number, inPlace: number, lossSeconds: number): number {
  const random = generator(7);
  let [kept, wall] = [0, 0];
  for (let failure = 0; failure < 200_000; failure++) {
    const trained = (-Math.log(random()) * 86_400) / (24.05e-3 * nodes);
    const ends = random() < 6.5 / 24.05;
    kept += trained;
    wall +=
      trained * (1 + cost / interval) +
      (ends ? 1005 : inPlace) +
      (ends ? interval * random() : 2 * lossSeconds * random());
  }
  return kept / wall;
}

test.each([4, 64, 512])('on %i nodes broken hosts cost a new attempt, other failures a restart in place', (nodes) => {
  const save = checkpointOf(nodes);
  const interval = save.intervalMinutes * 60;
  const cost = save.blockedSeconds + 0.02 * save.saveSeconds;
  for (const [copies, inPlace, loss] of [
    [undefined, 140, interval / 2],
    [{ ...COPIES, overhead: 0 }, 85, COPIES.lossSeconds],
  ] as const) {
    const drawn = drawnGoodput(nodes, cost, interval, inPlace, loss);
    expect(Math.abs(expectedGoodput(save, nodes, undefined, copies) - drawn)).toBeLessThan(0.001);
  }
});

test('copies in memory help as much as they cover', () => {
  for (const nodes of [4, 64, 512]) {
    const save = checkpointOf(nodes);
    const spares = { instances: 4, attemptSeconds: FIVE_DAYS };
    const one = expectedGoodput(save, nodes, spares, { ...COPIES, overhead: 0, copies: 1 });
    const two = expectedGoodput(save, nodes, spares, { ...COPIES, overhead: 0 });
    expect(one).toBeGreaterThan(expectedGoodput(save, nodes, spares));
    expect(two).toBeGreaterThan(one);
    expect(expectedGoodput(save, nodes, spares, COPIES)).toBeLessThan(two);
    // Where copies cover all but the end of a job, saves are rarer if spare hosts prevent that. They are written from copies.
    const [without, alone, spared] = [undefined, endedShare(false), endedShare(true)].map((share) =>
      checkpointPlan(12 * 70e9, P5(nodes), share),
    );
    expect(alone?.optimalIntervalMinutes).toBeLessThan(spared?.optimalIntervalMinutes ?? 0);
    expect([without, alone, spared].map((plan) => plan?.blockedSeconds === 0)).toEqual([false, true, true]);
  }
});

test('no spare hosts are the same as none requested', () => {
  for (const nodes of [4, 64, 512]) {
    const none = { instances: 0, attemptSeconds: FIVE_DAYS };
    expect(expectedGoodput(checkpointOf(nodes), nodes, none)).toBe(expectedGoodput(checkpointOf(nodes), nodes));
  }
});

test('more spare hosts never lower the expected goodput, and never raise it to that of no failures', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 4096 }),
      fc.integer({ min: 0, max: 100 }),
      fc.integer({ min: 1, max: 100 }),
      fc.integer({ min: 1, max: 2_419_200 }),
      (nodes, instances, more, attemptSeconds) => {
        const goodput = (count: number) =>
          expectedGoodput(checkpointOf(nodes), nodes, { instances: count, attemptSeconds });
        expect(goodput(instances + more)).toBeGreaterThanOrEqual(goodput(instances) - 1e-12);
        expect(metBySpares(nodes, { instances: instances + more, attemptSeconds })).toBeLessThan(DEVICE_SHARE + 1e-9);
      },
    ),
    { numRuns: 1000 },
  );
});

describe('the best number of spare hosts', () => {
  test.each([
    [4, undefined],
    [64, undefined],
    [256, 1],
    [512, 3],
    [2048, 11],
  ])('of %i nodes is %s', (nodes, instances) => {
    expect(bestSpares(checkpointOf(nodes), nodes, FIVE_DAYS)?.instances).toBe(instances);
  });

  test('saves more than it costs, and no other number saves as much', () => {
    const best = bestSpares(checkpointOf(512), 512, FIVE_DAYS);
    const gain = (instances: number) => {
      const value = spareValue(checkpointOf(512), 512, { instances, attemptSeconds: FIVE_DAYS });
      return value.savedNodeHours - value.paidNodeHours;
    };
    const others = Array.from({ length: 32 }, (_, i) => gain(i + 1));
    expect(gain(best?.instances ?? 0)).toBe(Math.max(...others));
    expect(best).toMatchObject({ paidNodeHours: 2160 });
    expect(best?.savedNodeHours).toBeCloseTo(((best?.goodput ?? 0) - (best?.goodputWithout ?? 0)) * 512 * 720, 6);
  });
});
