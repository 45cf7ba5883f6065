import { type Evidence, type Move, move } from '../action';
import type { EpochMs, RunRecord, RunState } from '../record';
import { event, notice } from '../timeline';

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
  const why =
    endedEarly === undefined ? 'training completed' : `training completed, but it may have ended early: ${endedEarly}`;
  return {
    ...endRun('completed', why, now, evidence),
    notices: [
      notice(record, now, {
        alert: endedEarly === undefined ? 'run-completed' : 'ended-early',
        about: String(record.version),
        text: endedEarly === undefined ? 'completed' : why,
        runbook: 'completed',
      }),
    ],
  };
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
