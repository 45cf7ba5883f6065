import { z } from 'zod';

const SECONDS_OF: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Seconds of `90s`, `1.5h` or `-2m`; undefined when the text is not a duration. A bare 0 needs no unit. */
export function parseDuration(value: unknown): number | undefined {
  if (value === 0) return 0;
  if (typeof value !== 'string') return undefined;
  const match = /^([+-]?\d+(?:\.\d+)?)(s|m|h|d)$/.exec(value.trim());
  const unit = match?.[2] === undefined ? undefined : SECONDS_OF[match[2]];
  return unit === undefined ? undefined : Number(match?.[1]) * unit;
}

/** Formats a duration for a scenario file, in the largest unit that gives a short number. */
export function formatDuration(seconds: number): string {
  if (seconds === 0) return '0h';
  for (const [unit, size] of Object.entries(SECONDS_OF).reverse()) {
    const count = Math.round((seconds / size) * 1000) / 1000;
    if (unit !== 'd' && Math.abs(seconds) >= size && count * size === seconds) return `${count}${unit}`;
  }
  return `${Math.round(seconds * 1000) / 1000}s`;
}

const duration = (least: number, must: string) =>
  z.unknown().transform((value, context): number => {
    const seconds = parseDuration(value);
    if (seconds !== undefined && seconds >= least) return seconds;
    context.issues.push({ code: 'custom', message: must, input: value });
    return z.NEVER;
  });

/** A time since the start of the scenario, seconds. */
export const timeSchema = duration(0, 'must be a time such as 0h, 90s, 1.5h or 3d');
/** A difference that may be negative, seconds. */
export const shiftSchema = duration(Number.NEGATIVE_INFINITY, 'must be a duration such as -120s or 2m');
