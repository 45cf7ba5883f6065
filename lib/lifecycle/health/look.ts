import { attemptCostUsd, expectedRate } from '../accounting/spend';
import { deterministicUnit } from '../backoff';
import { isEqual } from '../is-equal';
import type { PresentJob } from '../observed';
import { isPoolDue, waitsForPoolAlone } from '../phases/settle-pool';
import type { Attempt, EpochMs, RunRecord } from '../record';

/**
 * How closely a run is looked at. One that trains as it should is looked at in every second tick, its checkpoints are listed once an hour, and
 * so is its progress written: nothing follows from it that the next look does not see as well, and these three are most of what
 * 1,000 live runs cost. Whatever is not steady has every tick, every listing and every write.
 */
const TICK_MS = 300_000;
const TICKS_BETWEEN_LOOKS = 2;
const TICKS_BETWEEN_LISTINGS = 12;
/** How often the progress of a steady run is written. */
export const WRITE_PROGRESS_MS = 3_600_000;
/** Steps older than this in the newest heartbeat are no longer steps that go on. */
const STEP_AGE_MS = 600_000;

/** Its job trains, its steps were seen, and nobody wants anything of it, as far as the table says. */
export function isSteady(record: RunRecord): boolean {
  const { attempt, outbox, desired, state } = record;
  if (!attempt || state !== 'running' || desired !== 'run' || outbox.length > 0) return false;
  const { phase, status, secondaryStatus, progress } = attempt;
  const { stop, handOver, suspectedHangAt, aliveAt, unreadSince, absentSince } = attempt;
  const isTraining = phase === 'created' && status === 'InProgress' && secondaryStatus === 'Training';
  const questions = [stop, handOver, suspectedHangAt, aliveAt, unreadSince, absentSince];
  const isQuestioned = questions.some((since) => since !== undefined);
  return isTraining && !isQuestioned && hasTimedStep(progress);
}

/** The driver says when its newest step was: then a look that was left out is made up for by the next one. */
function hasTimedStep(progress: Attempt['progress']): boolean {
  const newest = progress?.starts?.[progress.starts.length - 1];
  return newest?.stepAt != null && newest.endedAt === null;
}

/**
 * Whether a tick looks at the run. Steady runs take turns, so that each tick has half of them; one that is over waits until its warm pool has
 * ended, unless a notice of it is still to be published.
 */
export function isDueForLook(record: RunRecord, now: EpochMs): boolean {
  if (waitsForPoolAlone(record)) return isPoolDue(record, now);
  return !isSteady(record) || isTurn(record.runId, now, TICKS_BETWEEN_LOOKS);
}

/**
 * Whether this look lists the checkpoints of a live job.
 * @param job what Describe said just now
 */
export function isDueForListing(record: RunRecord, job: PresentJob, now: EpochMs): boolean {
  const { attempt } = record;
  const isAsWritten = job.status === attempt?.status && job.secondaryStatus === attempt.secondaryStatus;
  if (!attempt || !isAsWritten || !isSteady(record) || isNearCap(record, attempt, now)) return true;
  return isTurn(record.runId, now, TICKS_BETWEEN_LISTINGS);
}

/** A job near the spend cap is stopped at its next commit, which must then be seen. */
function isNearCap(record: RunRecord, attempt: Attempt, now: EpochMs): boolean {
  const { maxCostUsd: cap, checkpointIntervalSeconds } = record.policy;
  if (cap === null || record.spentUsd === null) return cap !== null;
  const ahead = ((expectedRate(record, attempt) ?? 0) * (checkpointIntervalSeconds + 7200)) / 3600;
  return record.spentUsd + (attemptCostUsd(record, attempt, now) ?? 0) + ahead >= cap;
}

/** Whether a changed record says more than that steps go on. `next` is what would be written in place of `record`. */
export function isWorthWriting(record: RunRecord, next: RunRecord): boolean {
  if (!isSteady(record) || !isSteady(next)) return true;
  const before = record.attempt?.progress;
  const progress = next.attempt?.progress;
  if (!before || !progress || before.phase !== progress.phase) return true;
  if (progress.starts?.length !== before.starts?.length) return true;
  if (progress.beatAt - before.beatAt >= WRITE_PROGRESS_MS) return true;
  const stepAt = progress.starts?.[progress.starts.length - 1]?.stepAt ?? 0;
  return progress.beatAt - stepAt > STEP_AGE_MS || !isSameBesideProgress(record, next);
}

const isSameBesideProgress = (record: RunRecord, next: RunRecord): boolean =>
  isEqual(record.attempt, next.attempt, ['progress', 'lastStep']) && isEqual(record, next, ['attempt', 'version']);

const isTurn = (runId: string, now: EpochMs, ticks: number): boolean => {
  const offset = Math.floor(deterministicUnit(runId) * TICKS_BETWEEN_LISTINGS);
  return (Math.floor(now / TICK_MS) + offset) % ticks === 0;
};
