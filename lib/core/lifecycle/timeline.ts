import type { Evidence, TimelineEvent } from './action';
import type { EpochMs, Notice, RunRecord } from './record';

/** Creates a timeline event. */
export const event = (at: EpochMs, what: string, text: string, evidence: Evidence = {}): TimelineEvent => ({
  at,
  what,
  text,
  evidence,
});

/** Content of a notice: the alert, its subject, and the runbook for it. */
export interface NoticeParts {
  alert: string;
  about: string;
  text: string;
  runbook: string;
}

/** A notice has one or two sentences; the rest is in the timeline. */
const MAX_TEXT = 2000;

/** An unknown state that lasts is reported again each day. */
export const dayOf = (since: EpochMs, now: EpochMs): number => Math.max(0, Math.floor((now - since) / 86_400_000));

/** A notice for people. Its id consists of the alert and its subject, so that it is sent only once. */
export const notice = (record: RunRecord, at: EpochMs, { alert, about, text, runbook }: NoticeParts): Notice => ({
  id: `${alert}/${about}`,
  alert,
  text: `${record.runId}: ${text}`.slice(0, MAX_TEXT),
  runbook,
  at,
});
