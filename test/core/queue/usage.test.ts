import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { admit } from '../../../lib/core/queue/admit';
import {
  advanceUsage,
  dominantHours,
  ENVIRONMENT_POOL,
  HALF_LIFE_MS,
  heldBy,
  NO_USAGE,
  type QueuedRun,
  type QueueUsage,
  type RunningRun,
  teamsAbove,
} from '../../../lib/core/queue/order';

const T0 = Date.UTC(2026, 10, 21);
const HOUR = 3_600_000;
const holds = (team: string, p5: number): RunningRun => ({ runId: team, team, instances: p5, needs: { p5 } });

describe('use of the past', () => {
  const used = (hours: number): QueueUsage => ({ at: T0, hours: { nlp: { p5: hours } }, held: {} });

  test('loses half of its weight in a half-life', () => {
    expect(advanceUsage(used(100), {}, T0 + HALF_LIFE_MS).hours).toEqual({ nlp: { p5: 50 } });
  });

  test('grows by what was held since the last pass, not by what is held now', () => {
    const first = advanceUsage(NO_USAGE, heldBy([holds('nlp', 8)]), T0);
    const second = advanceUsage(first, heldBy([holds('speech', 8)]), T0 + HOUR);
    expect(second.hours.nlp?.p5).toBeCloseTo((8 * 24 * (1 - 0.5 ** (1 / 24))) / Math.LN2, 6);
    expect(second.hours.speech).toBeUndefined();
  });

  test('is the same over one long time and many short ones', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 50 * HOUR }), { minLength: 1, maxLength: 20 }), (pauses) => {
        const held = { nlp: { p5: 3 } };
        let now = T0;
        let stepwise: QueueUsage = { ...used(40), held };
        for (const pause of pauses) {
          now += pause;
          stepwise = advanceUsage(stepwise, held, now);
        }
        const atOnce = advanceUsage({ ...used(40), held }, held, now);
        expect(stepwise.hours.nlp?.p5).toBeCloseTo(atOnce.hours.nlp?.p5 ?? Number.NaN, 6);
      }),
    );
  });
});

describe('dominant share', () => {
  const pool = (limit: number | null) => ({ limit, usedByOthers: 0, name: 'x' });
  const share = (used: Record<string, number>, pools: Record<string, ReturnType<typeof pool>>) =>
    dominantHours({ nlp: used }, pools).get('nlp');

  test('is the largest over the pools, in hours of the whole pool', () => {
    expect(share({ p5: 4, p4: 4 }, { p5: pool(8), p4: pool(16) })).toBe(0.5);
  });

  test('a pool without a known limit is as large as what all used of it', () => {
    const hours = { nlp: { p5: 3 }, speech: { p5: 1 } };
    expect([...dominantHours(hours, { p5: pool(null) })]).toEqual([
      ['nlp', 0.75],
      ['speech', 0.25],
    ]);
  });

  test('the limit of the environment counts where it is set, or where nothing else is known', () => {
    const used = { p5: 1, [ENVIRONMENT_POOL]: 4 };
    expect(share(used, { p5: pool(8), [ENVIRONMENT_POOL]: pool(8) })).toBe(0.5);
    expect(share(used, { p5: pool(8), [ENVIRONMENT_POOL]: pool(null) })).toBe(0.125);
    expect(share(used, { p5: pool(8) })).toBe(0.125);
    expect(share({ [ENVIRONMENT_POOL]: 4 }, {})).toBe(1);
  });
});

test('a team that has used exactly its entitlement is not above it', () => {
  const usage = (nlp: number, speech: number): QueueUsage => ({
    ...NO_USAGE,
    hours: { nlp: { p5: nlp }, speech: { p5: speech } },
  });
  const above = (nlp: number, speech: number, shares = {}) => [
    ...teamsAbove([], { shares, usage: usage(nlp, speech) }),
  ];
  expect(above(5, 5)).toEqual([]);
  expect(above(2, 1, { nlp: 2 })).toEqual([]);
  expect(above(2, 1)).toEqual(['nlp']);
  expect(above(2.1, 1, { nlp: 2 })).toEqual(['nlp']);
});

const anyTeam = fc.constantFrom('nlp', 'speech', 'vision');
const anyWaiting = fc.array(
  fc.record({ team: anyTeam, p5: fc.integer({ min: 1, max: 8 }), hours: fc.integer({ min: 0, max: 100 }) }),
  {
    maxLength: 12,
  },
);
const anyUse = fc.dictionary(anyTeam, fc.record({ p5: fc.double({ min: 0, max: 500, noNaN: true }) }));

test('no run of a team above its entitlement starts while one that fits of a team below waits', () => {
  fc.assert(
    fc.property(anyWaiting, anyUse, fc.integer({ min: 0, max: 16 }), (runs, hours, held) => {
      const waiting = runs.map(
        ({ team, p5, hours: waited }, i): QueuedRun => ({
          ...holds(team, p5),
          runId: `r${i}`,
          priority: 0,
          queuedAt: T0 - waited * HOUR,
          after: [],
        }),
      );
      const facts = {
        shares: { nlp: 2 },
        pools: { p5: { limit: 16, usedByOthers: 0, name: 'p5' } },
        usage: { at: T0, hours, held: {} },
      };
      const running = [holds('vision', held)];
      const { admitted } = admit({ ...facts, waiting, running, now: T0 });
      const above = teamsAbove(['vision', ...waiting.map((r) => r.team)], facts);
      const started = waiting.filter((r) => admitted.includes(r.runId));
      const ofAbove = started.filter((r) => above.has(r.team)).reduce((sum, r) => sum + r.instances, 0);
      if (ofAbove === 0) return;
      const free = 16 - held - started.reduce((sum, r) => sum + r.instances, 0);
      const passed = waiting.filter((r) => !admitted.includes(r.runId) && !above.has(r.team));
      // What the teams above got would not have been enough for any run that was passed.
      for (const run of passed) expect(run.instances).toBeGreaterThan(free + ofAbove);
    }),
  );
});
