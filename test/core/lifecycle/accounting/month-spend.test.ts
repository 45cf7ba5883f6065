import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bookedUsd, liveMonthUsd, monthOf } from '../../../../lib/core/lifecycle/accounting/month-spend';
import type { Attempt, RunRecord } from '../../../../lib/core/lifecycle/record';
import { draws } from '../../../support/draws';

const HOUR = 3_600_000;
const NOVEMBER = monthOf(Date.UTC(2026, 10, 22));
const attempt = (from: number, until: number, costUsd: number | null, number = 1): Attempt =>
  ({ number, phase: 'ended', trainingStartedAt: from, endedAt: until, costUsd }) as Attempt;
const run = (changes: Partial<RunRecord>): RunRecord =>
  ({
    createdAt: NOVEMBER.start,
    state: 'running',
    spentUsd: 0,
    policy: { capacityOptions: [] },
    ...changes,
  }) as unknown as RunRecord;
const RUN = run({});
const booked = (before: RunRecord, after: RunRecord) => Object.fromEntries(bookedUsd(before, after));

test('a month is a calendar month of UTC, in December too', () => {
  const december = { name: '2026-12', start: Date.UTC(2026, 11, 1), end: Date.UTC(2027, 0, 1) };
  expect(monthOf(Date.UTC(2026, 11, 31, 23, 59))).toEqual(december);
});

test('an attempt over midnight of the first is divided by its time', () => {
  const ended = run({ attempt: attempt(NOVEMBER.start - HOUR, NOVEMBER.start + 3 * HOUR, 40), spentUsd: 40 });
  expect(booked(RUN, ended)).toEqual({ '2026-10': 10, '2026-11': 30 });
});

test('an attempt is booked with the write that ends it, and never again', () => {
  const ended = run({ attempt: attempt(NOVEMBER.start, NOVEMBER.start + HOUR, 40), spentUsd: 40 });
  expect(booked(ended, { ...ended, reason: 'another' })).toEqual({});
  const next = run({ attempt: attempt(NOVEMBER.start, NOVEMBER.start + HOUR, 2, 2), spentUsd: 42 });
  expect(booked(ended, next)).toEqual({ '2026-11': 2 });
});

test('a price that is not known counts nothing', () => {
  expect(booked(RUN, run({ attempt: attempt(NOVEMBER.start, NOVEMBER.end, null), spentUsd: null }))).toEqual({});
});

test('a warm pool counts in the month in which it began, and what is given back is taken off again', () => {
  const leftPool = {
    attempt: { number: 1, jobName: 'research-pretrain-a001' },
    usdPerHour: 6,
    since: NOVEMBER.end - HOUR,
    until: NOVEMBER.end + HOUR,
  };
  expect(booked(RUN, run({ spentUsd: 12, leftPool }))).toEqual({ '2026-11': 12 });
  expect(booked(run({ spentUsd: 12, leftPool }), run({ spentUsd: 5, leftPool }))).toEqual({ '2026-11': -7 });
});

test('a pool that waits for the next attempt counts before it is booked', () => {
  const warmPool = {
    attempt: { number: 1, jobName: 'research-pretrain-a001' },
    usdPerHour: 6,
    since: NOVEMBER.start,
    until: NOVEMBER.end,
  };
  const waiting = run({ spentUsd: 40, warmPool, attempt: attempt(NOVEMBER.start, NOVEMBER.start, 40) });
  expect(liveMonthUsd(waiting, NOVEMBER, NOVEMBER.start + 2 * HOUR)).toBe(12);
});

test('the months of all changes of a run together hold what it has spent', () => {
  const times = fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2027, 11, 31) });
  const ends = fc.array(
    fc.record({ a: times, b: times, usd: fc.integer({ min: 0, max: 1e6 }), pool: fc.integer({ min: 0, max: 1000 }) }),
    {
      maxLength: 8,
    },
  );
  fc.assert(
    fc.property(ends, (attempts) => {
      let record = RUN;
      let sum = 0;
      attempts.forEach(({ a, b, usd, pool }, i) => {
        const next = run({
          attempt: attempt(Math.min(a, b), Math.max(a, b), usd, i + 1),
          spentUsd: (record.spentUsd ?? 0) + usd + pool,
        });
        sum += [...bookedUsd(record, next).values()].reduce((x, y) => x + y, 0);
        record = next;
      });
      expect(sum).toBeCloseTo(record.spentUsd ?? 0, 3);
    }),
    { numRuns: draws(100) },
  );
});

test('an attempt whose end nobody saw is booked where it began, and one that never trained not at all', () => {
  const ended = (changes: Partial<Attempt>) => run({ attempt: { ...attempt(0, 0, 40), ...changes }, spentUsd: 40 });
  const began = NOVEMBER.start + HOUR;
  expect(booked(RUN, ended({ trainingStartedAt: began, endedAt: undefined }))).toEqual({ '2026-11': 40 });
  const untrained = ended({ trainingStartedAt: undefined, endedAt: NOVEMBER.start });
  expect(booked(RUN, { ...untrained, spentUsd: 0 })).not.toHaveProperty('NaN');
});
