import { type Evidence, event, type Move, move, notice } from '../action';
import { CLASS_POLICY } from '../budgets';
import { instancesOn } from '../capacity-options';
import type { Verdict } from '../classify';
import type { EndedRecord } from '../observed';
import type { EpochMs, Notice, RunRecord, RunState } from '../record';

/** Why a run fails, and the runbook for it. */
export interface Failure {
  why: string;
  runbook: string;
  evidence?: Evidence;
}

/** Fails the run and notifies a person of the reason and the runbook. */
export function failRun(record: RunRecord, now: EpochMs, { why, runbook, evidence = {} }: Failure): Move {
  const text = `failed: ${why}`;
  return {
    ...endRun('failed', why, now, evidence),
    notices: [notice(record, now, { alert: 'run-failed', about: String(record.version), text, runbook })],
  };
}

/**
 * Completes the run.
 * @param endedEarly what suggests that its program did not do all that it was asked for
 */
export function completeRun(record: RunRecord, now: EpochMs, evidence: Evidence, endedEarly?: string): Move {
  const about = { about: String(record.version), runbook: 'completed' };
  if (endedEarly === undefined) {
    const sent = notice(record, now, { alert: 'run-completed', text: 'completed', ...about });
    return { ...endRun('completed', 'training completed', now, evidence), notices: [sent] };
  }
  const text = `training completed, but it may have ended early: ${endedEarly}`;
  const sent = notice(record, now, { alert: 'ended-early', text, ...about });
  return { ...endRun('completed', text, now, evidence), notices: [sent] };
}

/** Stops the run, on a person's request or because of its own limits. */
export function stopRun(why: string, now: EpochMs, evidence: Evidence = {}): Move {
  return endRun('stopped', why, now, evidence);
}

function endRun(state: RunState, why: string, now: EpochMs, evidence: Evidence): Move {
  return move({
    changes: { state, reason: why, endedAt: now, notBefore: undefined },
    events: [event(now, `run-${state}`, why, evidence)],
  });
}

const DAY_MS = 86_400_000;
/** Restarts in a day of one host from which a person is notified, and further ones for each so many hosts: large clusters fail more often. */
const ALARM = { restarts: 8, hostsPerRestart: 100 };
/** At this multiple of the alarm the next attempt waits until the oldest restart is a day old. */
const BUDGET = 3;

/**
 * Bounds how often a run is restarted in a day, also when each attempt makes progress: then nothing else stops a run that loses half of
 * its work, and nobody would notice.
 * @param notBefore when the next attempt may start according to its back-off
 */
export function paceRestarts(
  record: RunRecord,
  { ended, verdict: { failureClass, reason } }: { ended: EndedRecord; verdict: Verdict },
  notBefore: EpochMs,
  now: EpochMs,
): { changes: Pick<RunRecord, 'notBefore' | 'restarts'>; notices: Notice[] } {
  const at = notBefore > now ? notBefore : undefined;
  if (!CLASS_POLICY[failureClass].burnsAttempt) return { changes: { notBefore: at }, notices: [] };
  const restarts = [...(record.restarts ?? []).filter((time) => now - time < DAY_MS), now];
  const alarm = ALARM.restarts + Math.floor(instancesOn(record, record.capacityOptionId) / ALARM.hostsPerRestart);
  const oldest = restarts[restarts.length - alarm * BUDGET];
  const later = oldest === undefined ? at : Math.max(notBefore, oldest + DAY_MS);
  if (restarts.length < alarm) return { changes: { notBefore: later, restarts }, notices: [] };
  const usd = ended.spentUsd ?? record.spentUsd;
  const cost = usd === null ? 'what it has cost is not known' : `it has cost $${usd.toFixed(0)} so far`;
  const text = `was restarted ${restarts.length} times in a day, last because ${reason}; ${cost}, and after ${alarm * BUDGET} restarts in a day it waits`;
  const about = new Date(now).toISOString().slice(0, 10);
  return {
    changes: { notBefore: later, restarts: restarts.slice(-alarm * BUDGET) },
    notices: [notice(record, now, { alert: 'restarts-often', about, text, runbook: 'restarts' })],
  };
}
