import { addUsd, attemptCostUsd, BEAT_MS, STOP_MS } from '../accounting/spend';
import type { Observed } from '../observed';
import type { Attempt, EpochMs } from '../record';
import { newestCommitted } from '../resuming/resume';
import type { EndedRecord, Situation } from '../situation';
import { nextProgress } from './hang';
import { stepsOf } from './step-times';

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
  // If the job was never described, its first step is the earliest known time; if only a checkpoint shows that it trained, its creation is.
  const createdAt = committed?.attempt === attempt.number ? attempt.acceptedAt : undefined;
  const trainingStartedAt = attempt.trainingStartedAt ?? progress?.starts?.[0]?.firstStepAt ?? createdAt;
  const pauses = pausesBySteps({ ...attempt, trainingStartedAt, progress });
  const costUsd = attemptCostUsd(record, { ...attempt, trainingStartedAt, pauses }, endedAt);
  return {
    attempt: {
      ...attempt,
      trainingStartedAt,
      pauses,
      progress,
      firstStep: attempt.firstStep ?? steps.first,
      // Older drivers report a step and no starts.
      lastStep: steps.last ?? progress?.step ?? attempt.lastStep,
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
 * The pauses of a job that could no longer be described when it came back from its last pause: a step made since then shows that it had its
 * instances again, and the duration of the first start shows how long before that step it got them.
 */
function pausesBySteps({ pauses, progress, trainingStartedAt }: Attempt): Attempt['pauses'] {
  const since = pauses?.since;
  const starts = progress?.starts ?? [];
  const steppedAt = starts.find(({ firstStepAt }) => (firstStepAt ?? 0) > (since ?? 0))?.firstStepAt;
  if (!pauses || since === undefined || steppedAt == null) return pauses;
  const startUpMs = (starts[0]?.firstStepAt ?? 0) - (trainingStartedAt ?? Number.POSITIVE_INFINITY);
  const { since: _, ...rest } = pauses;
  return { ...rest, ms: pauses.ms + Math.max(0, steppedAt - Math.max(0, startUpMs) - since) };
}

/** What is said of a job that is not found by mistake. */
export const STILL_WRITES = 'it is not found, and its driver writes';
/** The driver writes a heartbeat every minute: this is three missing ones. */
export const LATE_BEAT_MS = 180_000;
/** How far our clock and that of S3 may differ. */
const CLOCKS_MS = 30_000;

/**
 * Whether a job that is not found lives all the same: only one that is over can be deleted, and its driver has written heartbeats since it
 * was first missing, the last one a short time ago.
 */
export const writesStill = ({ attempt, observed: { heartbeat }, now }: Situation): boolean =>
  attempt.absentSince !== undefined &&
  heartbeat?.attempt === attempt.number &&
  heartbeat.writtenAt > attempt.absentSince + CLOCKS_MS &&
  now - heartbeat.writtenAt < LATE_BEAT_MS;

/** When a job ended that the service no longer knows, as far as anything shows it. */
export const goneSince = ({ attempt, observed, now }: Pick<Situation, 'attempt' | 'observed' | 'now'>): EpochMs =>
  lastSeenAlive(attempt, lastBeat(attempt, observed), now);

/** When the job last wrote its heartbeat, even one whose content cannot be read; undefined when that is not known. */
function lastBeat(
  { number, intentAt, silentBeat }: Attempt,
  { heartbeat, unreadBeatAt = 0 }: Observed,
): EpochMs | undefined {
  if (heartbeat?.attempt === number) return heartbeat.writtenAt;
  return unreadBeatAt > intentAt ? unreadBeatAt : silentBeat;
}

/**
 * When a deleted job ended: at its last heartbeat, at the stop that was sent, or when the service last reported it as alive without
 * heartbeats, whichever is the latest. Only a job that is over can be deleted (DeleteTrainingJob), so it was billed until then. Without
 * `beatAt`, the time of its last heartbeat by S3, it ended when it was first found missing, or when a stop was accepted: the heartbeat in
 * the record may be an hour old.
 */
function lastSeenAlive(attempt: Attempt, beatAt: EpochMs | undefined, now: EpochMs): EpochMs {
  const { absentSince: missedAt = now, aliveAt = 0, stop, undescribedSince } = attempt;
  // Of a job that could not be described, a stop that was sent says nothing: the job may have been over.
  const stopAt = undescribedSince === undefined ? stop?.sentAt : stop?.acceptedAt;
  const stoppedAt = stopAt === undefined ? 0 : stopAt + STOP_MS;
  if (beatAt === undefined) return stop?.acceptedAt === undefined ? missedAt : Math.min(missedAt, stoppedAt);
  const seenAt = Math.max(beatAt + BEAT_MS, stoppedAt, aliveAt);
  // A heartbeat that is newer than `missedAt` means that our clock is behind that of S3.
  return beatAt > missedAt ? seenAt : Math.min(missedAt, seenAt);
}
