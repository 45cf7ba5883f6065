import { type Evidence, type Move, move } from './action';
import type { EpochMs, RunRecord, RunState } from './record';
import { event, notice } from './timeline';

/** The run ends and a person is told why and what to read. */
export function failRun(record: RunRecord, why: string, runbook: string, now: EpochMs, evidence: Evidence = {}): Move {
  return {
    ...endRun('failed', why, now, evidence),
    notices: [notice(record, 'run-failed', String(record.version), `failed: ${why}`, runbook, now)],
  };
}

/** The run is done. */
export function completeRun(record: RunRecord, now: EpochMs, evidence: Evidence = {}): Move {
  const why = 'training completed';
  return {
    ...endRun('completed', why, now, evidence),
    notices: [notice(record, 'run-completed', String(record.version), 'completed', 'completed', now)],
  };
}

/** The run is stopped, by a person or by its own limits. */
export function stopRun(why: string, now: EpochMs, evidence: Evidence = {}): Move {
  return endRun('stopped', why, now, evidence);
}

function endRun(state: RunState, why: string, now: EpochMs, evidence: Evidence): Move {
  return move({
    changes: { state, reason: why, endedAt: now, notBefore: undefined },
    events: [event(now, `run-${state}`, why, evidence)],
  });
}
