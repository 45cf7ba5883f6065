import type { Attempt, Checkpoint, EpochMs, Notice, RunRecord } from './record';

/** The observed values on which an entry of the timeline is based, as JSON. */
export type Evidence = Record<string, unknown>;

/** One line of a run's timeline: what was decided, why, and on which evidence. */
export interface TimelineEvent {
  at: EpochMs;
  /** A stable identifier for programs: `attempt-intended`, `job-adopted`, `run-failed`. */
  what: string;
  /** One sentence for human readers. */
  text: string;
  evidence: Evidence;
}

/** `save` always comes first: every decision is stored before it is carried out. */
export type Action =
  | { do: 'save'; record: RunRecord; previousVersion: number; events: TimelineEvent[] }
  | { do: 'create'; attempt: number; capacityOptionId: string; resumeFrom: Checkpoint | null }
  | { do: 'stop'; jobName: string }
  /** Writes the request to save and exit to the place where the driver polls for it. */
  | { do: 'hand-over'; attempt: number; text: string }
  | { do: 'notify'; notice: Notice };

/** What reconcile does in the account after the decision has been saved. */
export type Effect = Exclude<Action, { do: 'save' }>;

/** The result of one concern: changes to the record, timeline events, calls to make and people to notify. */
export interface Move {
  changes: Partial<RunRecord>;
  events: TimelineEvent[];
  effects: Effect[];
  notices: Notice[];
}

export const NO_MOVE: Move = { changes: {}, events: [], effects: [], notices: [] };

/** A move with the given parts; all other parts are empty. */
export function move(parts: Partial<Move>): Move {
  return { ...NO_MOVE, ...parts };
}

/** Changes to the current attempt of a record. */
export function changeAttempt(record: RunRecord, changes: Partial<Attempt>): Partial<RunRecord> {
  return record.attempt ? { attempt: { ...record.attempt, ...changes } } : {};
}

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
