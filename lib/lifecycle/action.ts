import type { Attempt, Checkpoint, EpochMs, Notice, RunRecord, StopWhy } from './record';

/** The values that an entry of the timeline rests on, as JSON. */
export type Evidence = Record<string, unknown>;

/** One line of a run's timeline: what was decided, why, and on which evidence. */
export interface TimelineEvent {
  at: EpochMs;
  /** A stable word for programs: `attempt-intended`, `job-adopted`, `run-failed`. */
  what: string;
  /** One sentence for people. */
  text: string;
  evidence: Evidence;
}

/** `save` always stands first: nothing is done that was not written down before. */
export type Action =
  | { do: 'save'; record: RunRecord; previousVersion: number; events: TimelineEvent[] }
  | {
      do: 'create';
      jobName: string;
      attempt: number;
      rungId: string;
      resumeFrom: Checkpoint | null;
      evidence: Evidence;
    }
  | { do: 'stop'; jobName: string; why: StopWhy; evidence: Evidence }
  /** Writes the request to save and leave to where the driver looks. */
  | { do: 'hand-over'; jobName: string; attempt: number; text: string; evidence: Evidence }
  | { do: 'notify'; notice: Notice; evidence: Evidence };

/** What reconcile does in the account after the decision was saved. */
export type Effect = Exclude<Action, { do: 'save' }>;

/** What one concern wants: changes to the record, lines for the timeline, calls to make, people to tell. */
export interface Move {
  changes: Partial<RunRecord>;
  events: TimelineEvent[];
  effects: Effect[];
  notices: Notice[];
}

/** Nothing changes and nothing is done. */
export const NO_MOVE: Move = { changes: {}, events: [], effects: [], notices: [] };

/** A move with these parts and nothing else. */
export function move(parts: Partial<Move>): Move {
  return { ...NO_MOVE, ...parts };
}

/** Changes to the current attempt of a record. */
export function changeAttempt(record: RunRecord, changes: Partial<Attempt>): Partial<RunRecord> {
  return record.attempt ? { attempt: { ...record.attempt, ...changes } } : {};
}
