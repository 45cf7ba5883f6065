import { TICK_SECONDS } from '../../contracts/launcher';
import { attemptCostUsd, expectedRate } from '../accounting/spend';
import { deterministicUnit } from '../budgets';
import { isPoolDue, waitsForPoolAlone } from '../phases/settle-pool';
import type { Attempt, EpochMs, PresentJob, RunRecord } from '../record';

export const TICK_MS = TICK_SECONDS * 1000;
/**
 * How often a run is observed. A steady run is observed in every second tick, its checkpoints are listed once an hour, and its progress is
 * written once an hour: the next observation shows the same facts, and these three calls are most of the cost of 1,000 live runs. A run
 * that is not steady is observed, listed and written at every tick.
 */
const TICKS_BETWEEN_OBSERVATIONS = 2;
const TICKS_BETWEEN_LISTINGS = 12;
const WRITE_PROGRESS_MS = 3_600_000;
/** If the newest step in the newest heartbeat is older than this, the run is no longer considered to be making steps. */
const STEP_AGE_MS = 600_000;

/**
 * Whether the run trains normally: its job is in status Training, its steps are observed, and the record holds no pending request or doubt.
 */
export function isSteady(record: RunRecord): boolean {
  const { attempt, outbox, desired, state } = record;
  if (!attempt || state !== 'running' || desired !== 'run' || outbox.length > 0) return false;
  const { phase, status, secondaryStatus, progress } = attempt;
  const { stop, handOver, suspectedHangAt, aliveAt, unreadSince, unlistedSince, absentSince, undescribedSince } =
    attempt;
  const isTraining = phase === 'created' && status === 'InProgress' && secondaryStatus === 'Training';
  const questions = [
    stop,
    handOver,
    suspectedHangAt,
    aliveAt,
    unreadSince,
    unlistedSince,
    absentSince,
    undescribedSince,
  ];
  const isQuestioned = questions.some((since) => since !== undefined);
  return isTraining && !isQuestioned && hasTimedStep(progress);
}

/** Whether the driver reports the time of its newest step: then a skipped observation loses nothing, because the next one shows it. */
function hasTimedStep(progress: Attempt['progress']): boolean {
  const newest = progress?.starts?.[progress.starts.length - 1];
  return newest?.stepAt != null && newest.endedAt === null;
}

/**
 * Whether the run is observed in this tick. Steady runs take turns, so that each tick covers half of them, except near their spend cap; a
 * run that is over waits until its warm pool has ended, unless one of its notices is still unpublished.
 */
export function isDueForObservation(record: RunRecord, now: EpochMs): boolean {
  if (waitsForPoolAlone(record)) return isPoolDue(record, now);
  const { attempt } = record;
  if (!attempt || !isSteady(record) || isNearCap(record, attempt, now)) return true;
  return isTurn(record.runId, now, TICKS_BETWEEN_OBSERVATIONS);
}

/**
 * Whether this pass lists the checkpoints of a live job.
 * @param job as Describe just returned it
 */
export function isDueForListing(record: RunRecord, job: PresentJob, now: EpochMs): boolean {
  const { attempt } = record;
  const isAsWritten = job.status === attempt?.status && job.secondaryStatus === attempt.secondaryStatus;
  if (!attempt || !isAsWritten || !isSteady(record) || isNearCap(record, attempt, now)) return true;
  return isTurn(record.runId, now, TICKS_BETWEEN_LISTINGS);
}

/** A job near the spend cap is stopped at its next commit, so that commit must be observed. */
function isNearCap(record: RunRecord, attempt: Attempt, now: EpochMs): boolean {
  const { maxCostUsd: cap, checkpointIntervalSeconds } = record.policy;
  if (cap === null || record.spentUsd === null) return cap !== null;
  const ahead = ((expectedRate(record, attempt) ?? 0) * (checkpointIntervalSeconds + 7200)) / 3600;
  return record.spentUsd + (attemptCostUsd(record, attempt, now) ?? 0) + ahead >= cap;
}

/** Whether a changed record contains more than newer steps. `next` would be written in place of `record`. */
export function isWorthWriting(record: RunRecord, next: RunRecord): boolean {
  if (!isSteady(record) || !isSteady(next)) return true;
  const before = record.attempt?.progress;
  const progress = next.attempt?.progress;
  if (!before || !progress || before.phase !== progress.phase) return true;
  if (progress.heartbeatAt - before.heartbeatAt >= WRITE_PROGRESS_MS) return true;
  const stepAt = progress.starts?.[progress.starts.length - 1]?.stepAt ?? 0;
  return progress.heartbeatAt - stepAt > STEP_AGE_MS || !isSameBesideProgress(record, next);
}

const isSameBesideProgress = (record: RunRecord, next: RunRecord): boolean =>
  isEqual(record.attempt, next.attempt, ['progress', 'lastStep']) && isEqual(record, next, ['attempt', 'version']);

const isTurn = (runId: string, now: EpochMs, ticks: number): boolean => {
  const offset = Math.floor(deterministicUnit(runId) * TICKS_BETWEEN_LISTINGS);
  return (Math.floor(now / TICK_MS) + offset) % ticks === 0;
};

const NONE: readonly string[] = [];

/**
 * Whether two values have the same JSON form; a field that is undefined equals a missing field.
 * @param but top-level fields that may differ. @default none
 */
export function isEqual(a: unknown, b: unknown, but = NONE): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  for (const key in left)
    if (left[key] !== right[key] && !but.includes(key) && !isEqual(left[key], right[key])) return false;
  for (const key in right) if (left[key] === undefined && right[key] !== undefined && !but.includes(key)) return false;
  return true;
}
