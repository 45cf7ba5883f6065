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

/** Completes the run. */
export function completeRun(record: RunRecord, now: EpochMs, evidence: Evidence = {}): Move {
  const why = 'training completed';
  return {
    ...endRun('completed', why, now, evidence),
    notices: [
      notice(record, now, {
        alert: 'run-completed',
        about: String(record.version),
        text: 'completed',
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
