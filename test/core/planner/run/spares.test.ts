import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkpointPlan, expectedGoodput, metBySpares } from '../../../../lib/core/planner/run/failures';
import { bestSpares, spareValue } from '../../../../lib/core/planner/run/spares';

const FIVE_DAYS = 432_000;
const DEVICE_SHARE = 226 / 258;
const checkpointOf = (nodes: number) => checkpointPlan(12 * 70e9, nodes, 8, 3200);

/** One attempt after the other, failure by failure, with a small generator of its own. */
function simulatedShare(nodes: number, instances: number, attemptSeconds: number): number {
  let state = 12_345;
  const random = () => {
    state = (state * 48_271) % (2 ** 31 - 1);
    return state / (2 ** 31 - 1);
  };
  const wait = () => (-Math.log(random()) * 86_400) / (6.5e-3 * nodes);
  let [failures, met] = [0, 0];
  for (let attempt = 0; attempt < 20_000; attempt++) {
    let left = instances;
    for (let at = wait(); at < attemptSeconds; at += wait()) {
      failures += 1;
      const replaceable = random() < DEVICE_SHARE && random() >= 1 / nodes;
      if (!replaceable || left === 0) break;
      left -= 1;
      met += 1;
    }
  }
  return met / failures;
}

describe('the share of hardware failures that find a spare host', () => {
  test('none without spare hosts, none where only the first host trains', () => {
    expect(metBySpares(512, { instances: 0, attemptSeconds: FIVE_DAYS })).toBe(0);
    expect(metBySpares(1, { instances: 4, attemptSeconds: FIVE_DAYS })).toBe(0);
  });

  test('all breakdowns of devices of other hosts than the first, with more spare hosts than breakdowns', () => {
    expect(metBySpares(8, { instances: 32, attemptSeconds: 3600 })).toBeCloseTo((DEVICE_SHARE * 7) / 8, 9);
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

test('without spare hosts goodput is what it was', () => {
  for (const [nodes, before] of [
    [4, 0.9962],
    [64, 0.978],
    [512, 0.872],
  ] as const) {
    expect(expectedGoodput(checkpointOf(nodes), nodes)).toBeCloseTo(before, 4);
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
    [512, 2],
    [2048, 8],
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
    expect(best).toMatchObject({ paidNodeHours: 1440 });
    expect(best?.savedNodeHours).toBeCloseTo(((best?.goodput ?? 0) - (best?.goodputWithout ?? 0)) * 512 * 720, 6);
  });
});
