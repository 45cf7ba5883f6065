import { changeAttempt, type Move, move, NO_MOVE } from '../action';
import { capacityOverdue } from '../budgets';
import { optionAfterCapacityFailure, unusableOptionIds } from '../capacity-options';
import type { IntentChange } from '../intent';
import type { Observed } from '../observed';
import type { EpochMs, RunRecord } from '../record';
import { event, notice } from '../timeline';
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
