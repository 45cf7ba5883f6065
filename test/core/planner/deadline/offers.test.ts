import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { endWithin, offersBy, type Question } from '../../../../lib/core/planner/deadline/by-date';
import { coursesOf, drawsFrom, NO_HISTORY, quantile, type Work } from '../../../../lib/core/planner/deadline/course';

const HOUR = 3_600_000;
const NOW = Date.UTC(2026, 10, 22, 12);
const DAY = 24 * HOUR;
const work: Work = {
  hours: 40,
  hours80: [32, 50],
  instances: 4,
  checkpoint: { blockedSeconds: 5, intervalMinutes: 20 } as Work['checkpoint'],
  failureSeconds: 1500,
};
const question: Question = {
  work,
  now: NOW,
  by: NOW + 4 * DAY,
  usdPerHour: { onDemand: 400, spot: 150 },
  history: {},
  plans: [],
};
const plan = (from: number, to: number, more = {}) => ({
  kind: 'training-plan-on-offer' as const,
  id: 'offer-1',
  blocks: [{ from, to }],
  instances: 4,
  usd: 9000,
  ...more,
});
const at = (iso: string | null) => Date.parse(iso ?? '');
const byKind = (q: Question, kind: string) => {
  const found = offersBy(q).find((offer) => offer.kind === kind);
  if (!found) throw new Error(`no offer ${kind}`);
  return found;
};

describe('draws', () => {
  test('have the moments of their distributions', () => {
    const draws = drawsFrom(7);
    const meanOf = (draw: () => number) => Array.from({ length: 20_000 }, draw).reduce((a, b) => a + b, 0) / 20_000;
    expect(meanOf(draws.uniform)).toBeCloseTo(0.5, 1);
    expect(meanOf(draws.normal)).toBeCloseTo(0, 1);
    expect(meanOf(() => draws.normal() ** 2)).toBeCloseTo(1, 1);
    for (const shape of [0.5, 1, 8]) expect(meanOf(() => draws.gamma(shape, 3)) / 3).toBeCloseTo(1, 1);
    for (const mean of [0.2, 5, 80]) expect(meanOf(() => draws.poisson(mean)) / mean).toBeCloseTo(1, 1);
    expect(drawsFrom(7).uniform()).toBe(drawsFrom(7).uniform());
  });

  test('quantiles lie between their neighbours', () => {
    expect([quantile([1, 2, 3, 4, 5], 0.5), quantile([0, 10], 0.25), quantile([3], 0.9)]).toEqual([3, 2.5, 3]);
  });
});

describe('the courses of a run', () => {
  test('own waits take the place of the published ones', () => {
    const seen = { ...NO_HISTORY, runs: 200, waitsHours: Array.from({ length: 200 }, () => 9) };
    const waits = coursesOf(work, 'on-demand', seen).map((c) => c.waitHours);
    expect(waits.filter((hours) => hours === 9).length / waits.length).toBeGreaterThan(0.95);
    expect(coursesOf(work, 'on-demand', NO_HISTORY).every((c) => c.waitHours !== 9)).toBe(true);
  });

  test('interruptions that own runs have seen make a run longer, and quiet ones shorter', () => {
    const mean = (interruptions: number, instanceHours: number) => {
      const all = coursesOf(work, 'spot', { runs: 3, waitsHours: [], interruptions, instanceHours });
      return all.reduce((sum, c) => sum + c.runHours, 0) / all.length;
    };
    expect(mean(20, 400)).toBeGreaterThan(mean(0, 0) * 1.05);
    expect(mean(0, 20_000)).toBeLessThan(mean(0, 0));
  });
});

describe('offers', () => {
  test('times follow one another, intervals hold the middle, and spot is cheaper', () => {
    const [first, second] = offersBy(question);
    expect([first?.kind, second?.kind]).toEqual(['spot', 'on-demand']);
    for (const offer of [first, second]) {
      if (!offer) throw new Error('no offer');
      expect(at(offer.startAt)).toBeGreaterThan(NOW);
      expect(at(offer.startInterval80[0])).toBeLessThanOrEqual(at(offer.startAt));
      expect(at(offer.endInterval80?.[0] ?? null)).toBeLessThan(at(offer.endAt));
      expect(at(offer.endInterval80?.[1] ?? null)).toBeGreaterThan(at(offer.endAt));
      // 40 hours of training at 400 or 150 USD, and a little more for saves and failures.
      const rate = offer.kind === 'spot' ? 150 : 400;
      expect((offer.usd ?? 0) / (40 * rate)).toBeGreaterThan(1);
      expect((offer.usd ?? 0) / (40 * rate)).toBeLessThan(1.3);
      expect(offer.makesDate).toBe(true);
      expect(at(offer.latestStartAt)).toBeGreaterThan(NOW);
    }
  });

  test('a launch at the latest moment makes the date nine times of ten', () => {
    const latest = at(byKind(question, 'on-demand').latestStartAt);
    expect(byKind({ ...question, now: latest }, 'on-demand').chance).toBeCloseTo(0.9, 1);
  });

  test('a date that is too near is not made, and it is too late to start', () => {
    const offer = byKind({ ...question, by: NOW + 20 * HOUR }, 'on-demand');
    expect(offer).toMatchObject({ makesDate: false, chance: 0, latestStartAt: null });
  });

  test('without a price there are no dollars', () => {
    const usdPerHour = { onDemand: 400, spot: null };
    expect(byKind({ ...question, usdPerHour }, 'spot')).toMatchObject({ usd: null, usdInterval80: null });
  });

  test('a training plan costs its fee, starts with its first block, and must be long enough', () => {
    const begin = NOW + DAY;
    const long = byKind({ ...question, plans: [plan(begin, begin + 3 * DAY)] }, 'training-plan-on-offer');
    expect(long).toMatchObject({ id: 'offer-1', usd: 9000, usdInterval80: [9000, 9000], makesDate: true });
    expect(at(long.startAt)).toBe(begin + HOUR / 6);
    const short = byKind({ ...question, plans: [plan(begin, begin + DAY / 2)] }, 'training-plan-on-offer');
    expect(short).toMatchObject({ endAt: null, endInterval80: null, chance: 0, makesDate: false, latestStartAt: null });
  });

  test('a plan with too few instances is said to be too small', () => {
    const offer = byKind(
      { ...question, plans: [plan(NOW, NOW + 4 * DAY, { instances: 2 })] },
      'training-plan-on-offer',
    );
    expect(offer).toMatchObject({ makesDate: false, note: 'has 2 instances free, the run needs 4' });
  });

  test('an own plan costs nothing more and goes before all others', () => {
    const own = plan(NOW, NOW + 4 * DAY, { kind: 'own-training-plan', usd: 0 });
    expect(offersBy({ ...question, plans: [own as never] })[0]?.kind).toBe('own-training-plan');
  });

  test('what happens between blocks is waited for', () => {
    const blocks = [
      { from: 0, to: 10 * HOUR },
      { from: 20 * HOUR, to: 40 * HOUR },
    ];
    const course = { waitHours: 0.5, runHours: 12, billedHours: 12 };
    // 9 hours in the first block (half an hour to start, half an hour before its end), three in the second.
    expect(endWithin(blocks, 0, course)).toBe(23.5 * HOUR);
    expect(endWithin(blocks, 0, { ...course, runHours: 40 })).toBe(Number.POSITIVE_INFINITY);
  });

  test('a later date never lowers the chance, and more work never raises it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 0, max: 200 }), (hours, more) => {
        const chance = (by: number, factor = 1) => {
          const w = { ...work, hours: 40 * factor, hours80: [32 * factor, 50 * factor] as const };
          return byKind({ ...question, work: w, by: NOW + by * HOUR }, 'on-demand').chance;
        };
        expect(chance(hours + more)).toBeGreaterThanOrEqual(chance(hours));
        // The two are different draws: 4,000 courses tell one per cent from another.
        expect(chance(hours, 1.5)).toBeLessThanOrEqual(chance(hours) + 0.02);
      }),
      { numRuns: 6 },
    );
  });
});
