import fc from 'fast-check';
import { expect, test } from 'vitest';
import { monthOf, monthSpendUsd, touches } from '../../../lib/lifecycle/accounting/month-spend';
import type { Attempt, RunRecord } from '../../../lib/lifecycle/record';

const NOVEMBER = monthOf(Date.UTC(2026, 10, 22));
const attempt = (from: number, until: number, costUsd: number | null): Attempt =>
  ({ phase: 'ended', trainingStartedAt: from, endedAt: until, costUsd }) as Attempt;
const RUN = { createdAt: 0, spentUsd: 0 } as RunRecord;

test('a month is a calendar month of UTC, in December too', () => {
  const december = monthOf(Date.UTC(2026, 11, 31, 23, 59));
  expect(december).toEqual({ start: Date.UTC(2026, 11, 1), end: Date.UTC(2027, 0, 1) });
});

test('an attempt over midnight of the first is divided by its time', () => {
  const hour = 3_600_000;
  const over = attempt(NOVEMBER.start - hour, NOVEMBER.start + 3 * hour, 40);
  expect(monthSpendUsd(RUN, [over, attempt(0, hour, 7)], NOVEMBER, NOVEMBER.end)).toBe(30);
});

test('a price that is not known counts nothing', () => {
  expect(monthSpendUsd(RUN, [attempt(NOVEMBER.start, NOVEMBER.end, null)], NOVEMBER, NOVEMBER.end)).toBe(0);
});

test('a run that ended before the month, or began after it, is left out', () => {
  const run = (createdAt: number, endedAt?: number) => touches({ createdAt, endedAt } as RunRecord, NOVEMBER);
  expect([run(0, NOVEMBER.start - 1), run(NOVEMBER.end), run(0), run(0, NOVEMBER.start)]).toEqual([
    false,
    false,
    true,
    true,
  ]);
});

test('months together hold what an attempt has cost', () => {
  const times = fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2027, 11, 31) });
  fc.assert(
    fc.property(times, times, fc.integer({ min: 0, max: 1e6 }), (a, b, usd) => {
      const [from, until] = [Math.min(a, b), Math.max(a, b)];
      let sum = 0;
      for (let month = monthOf(from); month.start <= until; month = monthOf(month.end))
        sum += monthSpendUsd(RUN, [attempt(from, until, usd)], month, until);
      expect(sum).toBeCloseTo(usd, 4);
    }),
  );
});

test('warm pools count in the month in which the last attempt ended, also one that waits for the next', () => {
  const hour = 3_600_000;
  const october = monthOf(NOVEMBER.start - 1);
  const over = attempt(NOVEMBER.start - hour, NOVEMBER.start + 3 * hour, 40);
  const spent = (record: Partial<RunRecord>, month = NOVEMBER) =>
    monthSpendUsd({ ...RUN, ...record }, [over], month, NOVEMBER.start + 4 * hour);
  expect([spent({ spentUsd: 52 }), spent({ spentUsd: 52 }, october)]).toEqual([42, 10]);
  const warmPool = { usdPerHour: 6, since: NOVEMBER.start + 3 * hour, until: NOVEMBER.end };
  expect(spent({ spentUsd: 40, warmPool })).toBe(36);
  expect(spent({ spentUsd: null, warmPool })).toBe(30);
});
