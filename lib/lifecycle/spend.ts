import type { Attempt, EpochMs, Rung, RunRecord } from './record';

/** Above this share of the cap the run is stopped even if no checkpoint comes. */
const HARD_CAP = 1.05;

export const currentRung = (record: RunRecord, rungId: string): Rung | undefined =>
  record.policy.ladder.find((r) => r.id === rungId);

/** What an attempt has cost so far, USD at the rung's price; null = the price is not known. Billing starts with training. */
export function attemptCostUsd(
  record: RunRecord,
  attempt: Attempt,
  until: EpochMs,
  billableSeconds?: number,
): number | null {
  const rate = currentRung(record, attempt.rungId)?.usdPerHour ?? null;
  if (rate === null) return null;
  if (attempt.trainingStartedAt === undefined && billableSeconds === undefined) return 0;
  const seconds = billableSeconds ?? Math.max(0, (until - (attempt.trainingStartedAt ?? until)) / 1000);
  return (rate * seconds) / 3600;
}

export function addUsd(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}

export type SpendVerdict = { kind: 'within' } | { kind: 'stop'; text: string };

/**
 * Whether the spend cap ends the attempt now. It ends at a checkpoint: when the next interval would cross the cap and this
 * observation brought a newer committed step; beyond the cap by a twentieth it ends at once.
 * @param newCommit a newer committed step was seen in this observation
 */
export function judgeSpend(record: RunRecord, attempt: Attempt, newCommit: boolean, now: EpochMs): SpendVerdict {
  const cap = record.policy.maxCostUsd;
  const rate = currentRung(record, attempt.rungId)?.usdPerHour ?? null;
  const soFar = addUsd(record.spentUsd, attemptCostUsd(record, attempt, now));
  if (cap === null || rate === null || soFar === null) return { kind: 'within' };
  const nextInterval = (rate * record.policy.checkpointIntervalSeconds) / 3600;
  const spent = `spent ${dollars(soFar)} of limits.maxCostUsd ${dollars(cap)}`;
  if (soFar >= cap * HARD_CAP) return { kind: 'stop', text: `${spent}; stopped` };
  if (newCommit && soFar + nextInterval > cap) {
    return {
      kind: 'stop',
      text: `${spent}, and the time to the next checkpoint would cross it; stopped after a checkpoint`,
    };
  }
  return { kind: 'within' };
}

/**
 * What the run will have cost at its last step, USD: spent so far, and the steps that are left at the speed of the last minutes.
 * Undefined while a price, the length or the speed is not known.
 */
export function projectedUsd(record: RunRecord, attempt: Attempt, now: EpochMs): number | undefined {
  const { totalSteps } = record.policy;
  const { step, vitals } = attempt.progress ?? {};
  const rate = currentRung(record, attempt.rungId)?.usdPerHour ?? null;
  const soFar = addUsd(record.spentUsd, attemptCostUsd(record, attempt, now));
  if (totalSteps === undefined || step === undefined || step === null || rate === null || soFar === null)
    return undefined;
  if (!vitals?.stepsPerHour) return undefined;
  return soFar + (rate * Math.max(0, totalSteps - step)) / vitals.stepsPerHour;
}

/** Why no further attempt may start; undefined when the cap leaves room for one checkpoint interval. */
export function spendRefusal(record: RunRecord, rungId: string): string | undefined {
  const cap = record.policy.maxCostUsd;
  const rate = currentRung(record, rungId)?.usdPerHour ?? null;
  if (cap === null || rate === null || record.spentUsd === null) return undefined;
  const least = (rate * record.policy.checkpointIntervalSeconds) / 3600;
  if (record.spentUsd + least <= cap) return undefined;
  return `spent ${dollars(record.spentUsd)} of limits.maxCostUsd ${dollars(cap)}; another attempt would not reach a checkpoint within it`;
}

const dollars = (usd: number): string => `$${usd.toFixed(2)}`;
