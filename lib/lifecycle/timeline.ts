import type { Evidence, TimelineEvent } from './action';
import type { EpochMs, Notice, RunRecord } from './record';

/** A line of the timeline. */
export const event = (at: EpochMs, what: string, text: string, evidence: Evidence = {}): TimelineEvent => ({
  at,
  what,
  text,
  evidence,
});

/** What a notice says: the alert, what it is about, and the runbook that helps. */
export interface NoticeParts {
  alert: string;
  about: string;
  text: string;
  runbook: string;
}

/** Something a person should know. Its id is the alert and what it is about, so that it is told once. */
export const notice = (record: RunRecord, at: EpochMs, { alert, about, text, runbook }: NoticeParts): Notice => ({
  id: `${alert}/${about}`,
  alert,
  text: `${record.runId}: ${text}`,
  runbook,
  at,
});
