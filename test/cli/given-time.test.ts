// --since, --at and --by: a span or a time that exists, and nothing that a calendar or a clock does not have.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { startTime } from '../../lib/cli/launch/launch';
import { deadlineOf } from '../../lib/cli/plan/by-date';
import { sinceMillis } from '../../lib/cli/runs/logs/logs';
import { draws } from '../support/draws';

const NOW = Date.UTC(2026, 10, 30, 14);
const DAY = 86_400_000;
const MS = { s: 1000, m: 60_000, h: 3_600_000, d: DAY };

/** What each option makes of a text; undefined when it refuses it. */
function read(text: string): Record<'since' | 'at' | 'by', number | undefined> {
  const given = (reader: () => number | string | undefined) => {
    try {
      const found = reader();
      return typeof found === 'string' ? Date.parse(found) : found;
    } catch {
      return undefined;
    }
  };
  return {
    since: given(() => sinceMillis(text, NOW)),
    at: given(() => startTime(text, NOW)),
    by: given(() => deadlineOf(text, NOW)),
  };
}

test('a span counts from now, back for --since and ahead for --at', () => {
  fc.assert(
    fc.property(fc.nat(10_000), fc.constantFrom('s', 'm', 'h', 'd'), (count, unit) => {
      const span = count * MS[unit as keyof typeof MS];
      const at = span <= 90 * DAY ? NOW + span : undefined;
      expect(read(`${count}${unit}`)).toEqual({ since: NOW - span, at, by: undefined });
    }),
    { numRuns: draws(100) },
  );
});

const digits = (most: number) => fc.integer({ min: 0, max: most }).map((n) => String(n).padStart(2, '0'));
const day = fc.tuple(fc.constantFrom('2024', '2025', '2026', '2027'), digits(13), digits(32)).map((d) => d.join('-'));
const time = fc
  .tuple(digits(24), digits(60), fc.constantFrom('', ':00', ':59', ':60', ':07.250'))
  .map(([h, m, s]) => `T${h}:${m}${s}Z`);

test('a date or a time is read when the calendar has it', () => {
  fc.assert(
    fc.property(day, fc.oneof(fc.constant(''), time), (date, clock) => {
      const text = `${date}${clock}`;
      const parsed = new Date(text);
      const has =
        !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(text.slice(0, 16).replace('Z', ''));
      const at = parsed.getTime();
      const end = at + (clock === '' ? DAY - 1000 : 0);
      expect(read(text)).toEqual({
        since: has ? at : undefined,
        at: has && at >= NOW && at <= NOW + 90 * DAY ? at : undefined,
        by: has && end > NOW && end <= NOW + 366 * DAY ? end : undefined,
      });
    }),
    { numRuns: draws(300) },
  );
});

test.each([
  '45',
  '5',
  '12',
  '0',
  '90',
  '3600',
  'h1',
  '-2h',
  '2w',
  '1.5h',
  '30 m',
  '5min',
  '1h30m',
  '10:00',
  'yesterday',
])('fails: %s, which is neither', (text) =>
  expect(read(text)).toEqual({ since: undefined, at: undefined, by: undefined }),
);

test.each(['2026-11-31', '2026-02-29', '2026-12-01 18:00', 'Dec 1 2026', '2026-12-01T18:00 UTC', '20261201'])(
  'fails: %s, which no calendar has or which is written otherwise',
  (text) => expect(read(text)).toEqual({ since: undefined, at: undefined, by: undefined }),
);

describe('a zone', () => {
  test.each(['2026-12-01T18:00+02:00', '2026-12-01T18:00:00.5-01:30'])('%s', (text) => {
    const at = Date.parse(text);
    expect(read(text)).toEqual({ since: at, at, by: at });
  });
});

test('a span before 1970 begins with it', () => {
  expect([sinceMillis('99999999999d', NOW), sinceMillis('0001-01-01', NOW)]).toEqual([0, 0]);
});
