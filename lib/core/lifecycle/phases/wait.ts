import { changeAttempt, dayOf, event, type Move, move, NO_MOVE, notice } from '../action';
import { capacityOverdue } from '../budgets';
import { largestOptionId, optionAfterCapacityFailure, unusableOptionIds } from '../capacity-options';
import type { IntentChange } from '../intent';
import type { Observed } from '../observed';
import type { Attempt, EpochMs, Notice, RunRecord } from '../record';
import { failRun } from './end-run';

/** A run that waits in the queue for this long is reported, with the reason why it waits. */
const QUEUE_ALARM_MS = 24 * 3_600_000;

/**
 * Handles a run that the queue holds back. Its capacity budget continues to run while it waits for a used-up quota, a capacity option that
 * can never start is replaced by one that can, and a long wait is reported once. No create call of its attempt can have made a job.
 */
export function waitInQueue(record: RunRecord, observed: Observed, now: EpochMs): Move {
  const overdue = capacityOverdue(record, now);
  if (overdue) return failRun(record, now, { why: `${record.reason}; ${overdue}`, runbook: 'capacity' });
  const capacityOptionId = optionAfterCapacityFailure(record, unusableOptionIds(observed));
  if (unusableOptionIds(observed).includes(record.capacityOptionId) && capacityOptionId !== record.capacityOptionId) {
    const text = `${record.capacityOptionId} cannot start within the quota; asks for ${capacityOptionId}`;
    const isOpen = record.attempt?.phase === 'intent';
    return move({
      changes: { ...(isOpen && changeAttempt(record, { capacityOptionId })), capacityOptionId },
      events: [event(now, 'rung-changed', text, { from: record.capacityOptionId, to: capacityOptionId })],
    });
  }
  // A run that was preempted has trained since it first joined the queue.
  const since = Math.max(record.queuedAt, record.preemptedAt ?? 0);
  if (now - since < QUEUE_ALARM_MS) return NO_MOVE;
  const hours = Math.round((now - since) / 3_600_000);
  const text = `has waited ${hours} h in the queue: ${record.reason}`;
  return move({
    notices: [notice(record, now, { alert: 'queue-wait', about: String(since), text, runbook: 'queue' })],
  });
}

/**
 * Notifies a person once about each end of a failed or stopped run that a queued run waits for. Undefined when there is nothing to report.
 * @param awaited the runs that it waits for, by the entries of `after`
 */
export function blockedRun(
  record: RunRecord,
  awaited: ReadonlyMap<string, RunRecord | undefined>,
  now: EpochMs,
): IntentChange | undefined {
  const fresh = record.after.flatMap((wanted) => {
    const other = awaited.get(wanted);
    if (other?.state !== 'failed' && other?.state !== 'stopped') return [];
    const text = `waits for ${wanted}, and ${other.runId} is ${other.state}; resume that one, or stop this one`;
    const about = `${other.runId}/${other.endedAt}`;
    const sent = notice(record, now, { alert: 'after-failed', about, text, runbook: 'queue' });
    return record.alerts.includes(sent.id) ? [] : [sent];
  });
  if (fresh.length === 0) return undefined;
  return {
    record: {
      ...record,
      version: record.version + 1,
      outbox: [...record.outbox, ...fresh],
      alerts: [...record.alerts, ...fresh.map((n) => n.id)],
    },
    events: fresh.map((n) => event(now, 'after-failed', n.text)),
  };
}

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
