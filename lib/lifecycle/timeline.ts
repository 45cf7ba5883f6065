import type { Evidence, TimelineEvent } from './action';
import type { EpochMs, Notice, RunRecord } from './record';

/** A line of the timeline. */
export const event = (at: EpochMs, what: string, text: string, evidence: Evidence = {}): TimelineEvent => ({
  at,
  what,
  text,
  evidence,
});

/** Something a person should know. Its id is the alert and what it is about, so that it is said once. */
export function notice(
  record: RunRecord,
  alert: string,
  about: string,
  text: string,
  runbook: string,
  at: EpochMs,
): Notice {
  return { id: `${alert}/${about}`, alert, text: `${record.runId}: ${text}`, runbook, at };
}
