import { type Move, move } from '../action';
import { largestOptionId } from '../capacity-options';
import type { Attempt, EpochMs, Notice, RunRecord } from '../record';
import { dayOf, event, notice } from '../timeline';

/** A run that cannot go on because its checkpoints cannot be read holds its capacity this long; then others may use it. */
const KEEPS_CAPACITY_MS = 3_600_000;
/** Until a run that returned its capacity asks for it again, to try once more. */
const TRY_AGAIN_MS = 1_800_000;

/** Whether a run that has been unable to go on since then returns its capacity. */
export const returnsCapacity = (since: EpochMs, now: EpochMs): boolean => now - since >= KEEPS_CAPACITY_MS;

/** A run that others may pass from now on, at its old place: `queuedAt` does not change. The queue may again choose from all sizes. */
const queuedAgain = (record: RunRecord, reason: string, now: EpochMs): Partial<RunRecord> => ({
  state: 'queued',
  admitted: false,
  preemptedAt: now,
  reason,
  capacityOptionId: largestOptionId(record),
  reservation: undefined,
});

/**
 * Returns a run to the queue whose attempt released capacity for another run, or whose capacity was returned before its end could be
 * judged.
 */
export function backToQueue(record: RunRecord, attempt: Attempt, next: Move, now: EpochMs): Move {
  if (next.changes.state !== 'resuming') return next;
  if (attempt.handOver?.why === 'preempted') return afterPreemption(record, attempt, next, now);
  if (next.changes.admitted ?? record.admitted) return next;
  const { reason = '', capacityOptionId = largestOptionId(record) } = next.changes;
  return {
    ...next,
    changes: { ...next.changes, ...queuedAgain(record, reason, now), capacityOptionId },
    events: [...next.events, event(now, 'room-returned', reason, { queuedAt: record.queuedAt })],
  };
}

function afterPreemption(record: RunRecord, attempt: Attempt, next: Move, now: EpochMs): Move {
  const reason = attempt.handOver?.text ?? '';
  const text = `attempt ${attempt.number} made room; back in the queue at its place`;
  const preempted = notice(record, now, {
    alert: 'preempted',
    about: attempt.jobName,
    text: `${reason}; it resumes when there is room`,
    runbook: 'preemption',
  });
  return {
    ...next,
    changes: { ...next.changes, ...queuedAgain(record, reason, now) },
    events: [...next.events, event(now, 'run-preempted', text, { queuedAt: record.queuedAt })],
    notices: [...next.notices, preempted],
  };
}

/** A run whose next attempt cannot start, because it is not known from which checkpoint: after an hour it waits in the queue. */
export function waitForCheckpoints(record: RunRecord, why: string, now: EpochMs): Move {
  const { attempt, queuedAt } = record;
  // A run that was resumed joined the queue after its last attempt.
  const since = Math.max(attempt?.endedAt ?? 0, queuedAt);
  const notices = [unreadable(record, { about: `${attempt?.number ?? 0}`, since, text: why }, now)];
  if (!returnsCapacity(since, now)) return move({ notices });
  return move({
    changes: { ...queuedAgain(record, why, now), notBefore: now + TRY_AGAIN_MS },
    events: [event(now, 'room-returned', why, { queuedAt })],
    notices,
  });
}

interface Unreadable {
  /** What waits for them. */
  about: string;
  since: EpochMs;
  text: string;
}

/** Notifies a person that checkpoints cannot be read, again each day. */
export const unreadable = (record: RunRecord, { about, since, text }: Unreadable, now: EpochMs): Notice =>
  notice(record, now, {
    alert: 'checkpoints-unreadable',
    about: `${about}/${dayOf(since, now)}`,
    text,
    runbook: 'checkpoint',
  });
