import { type EpochMs, isOver, type RunRecord } from '../record';
import { billedFrom, billedUntil, endedUsd, liveCostUsd } from './spend';

/** A calendar month in UTC; its name is `2026-11`. */
export type Month = ReturnType<typeof monthOf>;

/** The calendar month in UTC. */
export function monthOf(time: EpochMs): { name: string; start: EpochMs; end: EpochMs } {
  const date = new Date(time);
  const first = (months: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1);
  return { name: date.toISOString().slice(0, 7), start: first(0), end: first(1) };
}

/**
 * What a change of a run adds to the spend of its team, USD by month, at the prices of the ledger: the cost of an attempt that has ended,
 * in proportion to its time in each month, and the cost of warm pools, in the month in which the pool began. The sums over all changes of a
 * run are its spend. Attempts without a known price are not counted.
 */
export function bookedUsd(before: RunRecord, after: RunRecord): Map<string, number> {
  const attempts = endedAttemptUsd(before, after);
  const ended = [...attempts.values()].reduce((sum, usd) => sum + usd, 0);
  const pools = (after.spentUsd ?? 0) - (before.spentUsd ?? 0) - ended;
  if (before.spentUsd === null || after.spentUsd === null || Math.abs(pools) < 1e-9) return attempts;
  const since = (before.warmPool ?? before.leftPool ?? before.earlierPools?.[0] ?? after.leftPool)?.since;
  const { name } = monthOf(since ?? after.endedAt ?? after.attempt?.endedAt ?? after.createdAt);
  return attempts.set(name, (attempts.get(name) ?? 0) + pools);
}

function endedAttemptUsd(before: RunRecord, { attempt }: RunRecord): Map<string, number> {
  const isKnown = before.attempt?.number === attempt?.number && before.attempt?.phase === 'ended';
  if (attempt?.phase !== 'ended' || isKnown || attempt.costUsd === null) return new Map();
  const { trainingStartedAt: from, endedAt: until = from } = attempt;
  if (from === undefined || until === undefined) return new Map();
  return shareByMonth(attempt.costUsd, from, Math.max(from, until));
}

/** Divides an amount over the months of a period; all of it belongs to the first month when the period has no length. */
function shareByMonth(usd: number, from: EpochMs, until: EpochMs): Map<string, number> {
  const shares = new Map<string, number>();
  for (let month = monthOf(from); ; month = monthOf(month.end)) {
    const within = Math.min(until, month.end) - Math.max(from, month.start);
    shares.set(month.name, until > from ? (usd * within) / (until - from) : usd);
    if (month.end >= until) return shares;
  }
}

/** What a run has cost in the month and is not booked yet, USD: its live attempt, and the warm pool that waits for the next one. */
export function liveMonthUsd(record: RunRecord, month: Month, now: EpochMs): number {
  if (isOver(record)) return 0;
  const pool = (endedUsd(record, now) ?? 0) - (record.spentUsd ?? 0);
  const { attempt } = record;
  const from = attempt && billedFrom(attempt);
  if (!attempt || from === undefined) return pool;
  const until = billedUntil(attempt, now);
  const usd = liveCostUsd(record, attempt, now) ?? 0;
  return pool + (shareByMonth(usd, from, Math.max(from, until)).get(month.name) ?? 0);
}
