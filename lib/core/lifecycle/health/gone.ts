import { addUsd, attemptCostUsd, billedFrom, lastSeenAlive, wroteSinceMissing } from '../accounting/spend';
import type { EndedRecord, Observed, Situation } from '../observed';
import type { Attempt, Checkpoint, EpochMs } from '../record';
import { newestCommitted } from '../resuming/resume';
import { nextProgress } from './hang';
import { stepsOf } from './step-times';

/**
 * When a job that was never described began to train, as its driver shows: when the driver began, or its first step with an older driver.
 * The code of a run can write what it likes there, but no time before the job was created.
 */
export function driverBeganAt(
  { acceptedAt, lastCreateAt, intentAt }: Attempt,
  progress: Attempt['progress'],
): EpochMs | undefined {
  const signs = [progress?.beganAt, progress?.starts?.[0]?.firstStepAt].filter((at) => at != null);
  return signs.length === 0 ? undefined : Math.max(Math.min(...signs), acceptedAt ?? lastCreateAt ?? intentAt);
}

/** Ends an attempt whose job the service no longer knows; its cost is booked up to when it was last seen alive. */
export function goneAttempt(
  { record, attempt, observed, now }: Situation,
  reason: string,
  failureClass: 'deleted' | 'collision',
): EndedRecord {
  const progress = nextProgress(attempt, observed.heartbeat, now);
  const steps = stepsOf(progress);
  const endedAt = goneSince({ attempt, observed, now });
  const committed = newestCommitted(record, observed);
  const isCommitted = committed?.attempt === attempt.number;
  const trainingStartedAt =
    attempt.trainingStartedAt ?? driverBeganAt(attempt, progress) ?? unseenStart(attempt, observed, isCommitted);
  const pauses = pausesBySteps({ ...attempt, trainingStartedAt, progress });
  const costUsd = attemptCostUsd(record, { ...attempt, trainingStartedAt, pauses }, endedAt);
  return {
    attempt: {
      ...attempt,
      trainingStartedAt,
      pauses,
      progress,
      firstStep: attempt.firstStep ?? steps.first,
      lastStep: lastKnownStep(attempt, progress, committed),
      phase: 'ended',
      endedAt,
      failureClass,
      reason,
      status: 'Deleted',
      costUsd,
    },
    committed,
    spentUsd: addUsd(record.spentUsd, costUsd),
  };
}

/**
 * When a job began to train that was never described, and whose driver shows no time: not before its creation if it committed a checkpoint,
 * or if nobody can know, because its heartbeats cannot be read either. The cap has counted it so all the time.
 */
function unseenStart(attempt: Attempt, { heartbeatError }: Observed, isCommitted: boolean): EpochMs | undefined {
  if (isCommitted) return attempt.acceptedAt;
  return heartbeatError === undefined ? undefined : billedFrom(attempt);
}

/** Older drivers report a step and no starts; what it committed shows its steps where its heartbeats could not be read any more. */
function lastKnownStep(attempt: Attempt, progress: Attempt['progress'], committed: Checkpoint | null): number | null {
  const seen = stepsOf(progress).last ?? progress?.step ?? attempt.lastStep;
  const saved = committed?.attempt === attempt.number ? committed.step : null;
  return saved === null ? seen : Math.max(seen ?? saved, saved);
}

/** The pauses of a job that could no longer be described when it came back from its last pause. */
function pausesBySteps(attempt: Attempt): Attempt['pauses'] {
  return pausesSince(attempt, attempt.pauses?.since ?? unseenPause(attempt));
}

/**
 * The pauses of a job whose last one began at a time: a step made since then shows that it had its instances again, and the duration of the
 * first start shows how long before that step it got them.
 */
export function pausesSince(attempt: Attempt, since: EpochMs | undefined): Attempt['pauses'] {
  const { pauses, progress } = attempt;
  const starts = progress?.starts ?? [];
  const steppedAt = starts.find(({ firstStepAt }) => (firstStepAt ?? 0) > (since ?? 0))?.firstStepAt;
  if (since === undefined || steppedAt == null) return pauses;
  const startUpMs = (starts[0]?.firstStepAt ?? 0) - (attempt.trainingStartedAt ?? Number.POSITIVE_INFINITY);
  const { since: known, ms = 0, times = 0 } = pauses ?? {};
  const pausedMs = Math.max(0, steppedAt - Math.max(0, startUpMs) - since);
  return { ms: ms + pausedMs, times: known === undefined ? times + 1 : times };
}

/** When the instances of a job went away while it could not be described: its driver was started again after this step. */
function unseenPause({ progress, undescribedSince = Number.POSITIVE_INFINITY }: Attempt): EpochMs | undefined {
  const { starts = [], earlierStarts = 0 } = progress ?? {};
  const steppedAt = starts.findLast(({ number }) => number < earlierStarts)?.stepAt;
  return steppedAt != null && steppedAt >= undescribedSince ? steppedAt : undefined;
}

/** What is said of a job that is not found by mistake. */
export const STILL_WRITES = 'it is not found, and its driver writes';
/** The driver writes a heartbeat every minute: this is three missing ones. */
export const LATE_HEARTBEAT_MS = 180_000;

/**
 * Whether a job that is not found lives all the same: only one that is over can be deleted, and its driver has written heartbeats since it
 * was first missing, the last one a short time ago. While no heartbeat can be read, that is so if it was so before.
 */
export function writesStill({ attempt, observed, now }: Situation): boolean {
  const heartbeatAt = newestHeartbeat(attempt, observed);
  if (heartbeatAt === undefined) return observed.heartbeatError !== undefined && wroteSinceMissing(attempt);
  return wroteSinceMissing(attempt, heartbeatAt) && now - heartbeatAt < LATE_HEARTBEAT_MS;
}

/** When a job ended that the service no longer knows, as far as anything shows it. */
export const goneSince = ({ attempt, observed, now }: Pick<Situation, 'attempt' | 'observed' | 'now'>): EpochMs =>
  lastSeenAlive(attempt, lastHeartbeat(attempt, observed), now);

/** When the job last wrote its heartbeat, even one whose content cannot be read; undefined when that is not known now. */
function newestHeartbeat(
  { number, intentAt }: Attempt,
  { heartbeat, unreadHeartbeatAt = 0 }: Observed,
): EpochMs | undefined {
  if (heartbeat?.attempt === number) return heartbeat.writtenAt;
  return unreadHeartbeatAt > intentAt ? unreadHeartbeatAt : undefined;
}

/** The same, or what earlier observations show of it. */
const lastHeartbeat = (attempt: Attempt, observed: Observed): EpochMs | undefined =>
  newestHeartbeat(attempt, observed) ??
  attempt.silentHeartbeat ??
  (wroteSinceMissing(attempt) ? attempt.progress?.heartbeatAt : undefined);
