import type { Attempt, EpochMs, RunRecord } from '../record';
import { attemptCostUsd, endedUsd } from './spend';

/** A calendar month, UTC. */
export interface Month {
  start: EpochMs;
  end: EpochMs;
}

/** The calendar month in UTC. */
export function monthOf(now: EpochMs): Month {
  const date = new Date(now);
  const first = (months: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1);
  return { start: first(0), end: first(1) };
}

/** Whether the run may have caused cost in the month. */
export const touches = ({ createdAt, endedAt }: RunRecord, { start, end }: Month): boolean =>
  createdAt < end && (endedAt ?? Number.POSITIVE_INFINITY) >= start;

/**
 * Cost of a run in a month, USD, at the prices of the ledger: the cost of each attempt in proportion to its time in the month, and the warm
 * pools of all attempts in the month in which the last of them ended. Attempts without a known price are not counted.
 * @param attempts all attempts of the run
 */
export function monthSpendUsd(record: RunRecord, attempts: readonly Attempt[], month: Month, now: EpochMs): number {
  return attemptsUsd(record, attempts, month, now) + poolsUsd(record, attempts, month, now);
}

function attemptsUsd(record: RunRecord, attempts: readonly Attempt[], month: Month, now: EpochMs): number {
  return attempts.reduce((sum, attempt) => {
    const { trainingStartedAt: from, endedAt: until = now } = attempt;
    const usd = attempt.phase === 'ended' ? attempt.costUsd : attemptCostUsd(record, attempt, now);
    if (from === undefined || usd === null) return sum;
    const inMonth = Math.max(0, Math.min(until, month.end) - Math.max(from, month.start));
    // An attempt that started and ended at the same moment belongs to the month of that moment.
    const share = until > from ? inMonth / (until - from) : Number(from >= month.start && from < month.end);
    return sum + usd * share;
  }, 0);
}

/** Spend of the record that is not in the attempts. */
function poolsUsd(record: RunRecord, attempts: readonly Attempt[], { start, end }: Month, now: EpochMs): number {
  const booked = endedUsd(record, now);
  const ended = attempts.filter(({ phase }) => phase === 'ended');
  const lastEnd = Math.max(...ended.map(({ endedAt = 0 }) => endedAt));
  if (booked === null || lastEnd < start || lastEnd >= end) return 0;
  return Math.max(0, booked - ended.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0));
}
