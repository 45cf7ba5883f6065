import { changeAttempt, type Move, move, NO_MOVE } from '../action';
import { capacityOverdue } from '../budgets';
import type { IntentChange } from '../intent';
import { rungAfterCapacityFailure, unusableRungs } from '../ladder';
import type { Observed } from '../observed';
import type { EpochMs, RunRecord } from '../record';
import { event, notice } from '../timeline';
import { failRun } from './end-run';
import { isInDoubt, SETTLE_MS } from './launch';
import { madeProgress } from './watch';

/** A run that waits in the queue for this long is told of, with what it waits for. */
export const QUEUE_ALARM_MS = 24 * 3_600_000;

/** When the run last joined the queue. */
export const queuedSince = (record: RunRecord): EpochMs => record.queuedAt ?? record.createdAt;

/**
 * A run that the queue holds back. Its capacity budget runs on while it waits for a quota that was used up, a rung that can never start
 * makes way for one that can, and a long wait is told of once. Once no create can have made a job, the queue may choose another size.
 */
export function waitInQueue(record: RunRecord, observed: Observed, now: EpochMs): Move {
  const overdue = capacityOverdue(record, now);
  if (overdue) return failRun(record, now, { why: `${record.reason}; ${overdue}`, runbook: 'capacity' });
  const rungId = rungAfterCapacityFailure(record, unusableRungs(observed));
  if (unusableRungs(observed).includes(record.rungId) && rungId !== record.rungId) {
    const text = `${record.rungId} cannot start within the quota; asks for ${rungId}`;
    const isOpen = record.attempt?.phase === 'intent';
    return move({
      changes: { ...(isOpen && changeAttempt(record, { rungId })), rungId },
      events: [event(now, 'rung-changed', text, { from: record.rungId, to: rungId })],
    });
  }
  const unmadeTries = newlyUnmade(record, observed, now);
  if (unmadeTries !== undefined) return move({ changes: changeAttempt(record, { unmadeTries }) });
  // A run that made room has trained since it joined.
  const since = Math.max(queuedSince(record), record.preemptedAt ?? 0);
  if (now - since < QUEUE_ALARM_MS) return NO_MOVE;
  const hours = Math.round((now - since) / 3_600_000);
  const text = `has waited ${hours} h in the queue: ${record.reason}`;
  return move({
    notices: [notice(record, now, { alert: 'queue-wait', about: String(since), text, runbook: 'queue' })],
  });
}

/** The creates of an attempt, once the service has not known its job for so long after the last of them that none made it. */
function newlyUnmade(record: RunRecord, observed: Observed, now: EpochMs): number | undefined {
  const { attempt } = record;
  if (!attempt || !isInDoubt(attempt) || observed.job.kind !== 'absent') return undefined;
  if (now - (attempt.lastCreateAt ?? 0) < SETTLE_MS) return undefined;
  // What it committed would show that it ran.
  return madeProgress({ record, attempt, observed, now }) === false ? attempt.createTries : undefined;
}

/**
 * A queued run that waits for runs which failed or were stopped: a person is told once of each. Undefined when nobody has to be.
 * @param awaited the runs that it waits for, by what `after` says
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
    const said = notice(record, now, { alert: 'after-failed', about: other.runId, text, runbook: 'queue' });
    return record.alerts.includes(said.id) ? [] : [said];
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
