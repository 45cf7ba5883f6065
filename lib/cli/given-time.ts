import { z } from 'zod';

const FORMS = { offset: true, local: true };
/** A precision of -1 leaves out the seconds. */
const ISO_TIME = z.union([z.iso.date(), z.iso.datetime(FORMS), z.iso.datetime({ ...FORMS, precision: -1 })]);
const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** An ISO 8601 date or time that exists, as epoch milliseconds; NaN for any other text. */
export const isoTime = (text: string): number => (ISO_TIME.safeParse(text).success ? Date.parse(text) : Number.NaN);

/** The same, or the time that is a span such as 30m, 2h or 1d away from now. */
export function timeOrSpan(text: string, now: number, direction: 1 | -1): number {
  const [, count, unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? [];
  return count === undefined ? isoTime(text) : now + direction * Number(count) * (UNIT_MS[unit] ?? 0);
}
