import type { Issue } from '../config/issue';
import type { Printed, QuotaAnswer, TimelineAnswer } from './answers';
import type { RunState } from './control-requests';

// Answers of the control function; its payloads are defined in control-requests.ts.
export type { AttemptAnswer, QuotaAnswer, TimelineAnswer } from './answers';
export * from './control-requests';

/** The number of an attempt of a status, of which earlier ones may have expired; older launchers do not name it. */
export const attemptNumber = ({ number }: Pick<StatusAnswer['attempts'][number], 'number'>, place: number): number =>
  number ?? place + 1;

/** The number of the newest attempt; 0 = none. */
export const newestAttempt = ({ attempt, attempts }: Pick<StatusAnswer, 'attempt' | 'attempts'>): number =>
  attempt ?? attempts.length;

/** Rule of the warning of a run that waits for a name that no run has, which only the launcher can see. */
export const UNMET = 'run/unmet';

/** A PUT request that the caller must make before it confirms; the presigned URL is valid only for these headers and this digest. */
export interface UploadAnswer {
  key: string;
  url: string;
  headers: Record<string, string>;
  sha256: string;
}

/** A run as shown by `status` and `list`. Amounts are in USD; null = not known yet. */
export interface StatusAnswer extends Printed<'status'> {
  /** Warm pool of the last job, which is billed until it ends. Absent = none. */
  warmPool?: { until: string; usdPerHour: number | null };
}

/** The configuration that all attempts of a run share. */
export type RunConfiguration = NonNullable<StatusAnswer['configuration']>;

/** One line of the timeline of a run. */
export interface EventAnswer extends TimelineAnswer {
  runId: string;
  /** Position in chronological order. */
  cursor: string;
}

/** One page of timelines. */
export interface EventsAnswer {
  /** Oldest first. */
  events: EventAnswer[];
  /** Cursor of the next page; null at the end. */
  next: string | null;
}

/** A rejected request. It is a regular answer, not a function error: exit code 1 of the command line. */
export interface Refusal {
  ok: false;
  issues: Issue[];
  quota?: QuotaAnswer[];
}

interface OfRun {
  ok: true;
  runId: string;
}

/** A start was accepted: the caller must make these uploads and then confirm. */
export interface IntentAnswer extends OfRun {
  uploads: UploadAnswer[];
  issues: Issue[];
  quota: QuotaAnswer[];
}

/** The run is queued, or its job was created immediately. */
export type StartAnswer = { ok: true } & Printed<'launched'>;

/** The answer to `stop` and `resume`. */
export interface DesiredAnswer extends OfRun {
  /** What the user requested: `stop` applies until `resume`. */
  desiredState: 'run' | 'stop';
  /** State of the run when the request arrived. Like `changed`, not set by older launchers. */
  state?: RunState;
  /** False when the request had no effect: the run had ended, or the same state was already requested. */
  changed?: boolean;
}

/** Result of releasing the warm pool of a run's last job. */
export interface ReleaseAnswer extends OfRun {
  /** null = the run has had no training job. */
  trainingJobName: string | null;
  /** Whether this call ended it. */
  released: boolean;
  /** Status before the call; null when the job has no warm pool. */
  warmPoolStatus: string | null;
  /** The job that has reused it; null if none. */
  reusedBy: string | null;
  /** Cost of the remaining time; null when the price is not known. */
  savedUsd: number | null;
}

/** The files of a run below its own prefixes, and how many of them this call deleted. */
export interface DeleteAnswer extends OfRun {
  /** What is left now. */
  places: { uri: string; objects: number; bytes: number }[];
  /** False when there are more objects than one call counts. */
  isWhole: boolean;
  /** Storage of what is left, USD per month; null when the price is not known in the Region. */
  usdPerMonth: number | null;
  /** Where the run also wrote, which is not deleted: other runs may use it. */
  kept: string[];
  deleted: number;
}

/** The note as stored. */
export interface NoteAnswer extends OfRun {
  note: string;
}

/** One line of a job's log. */
export interface LogEventAnswer {
  /** Identifies the event across repeated reads. */
  id: string;
  /** ISO 8601. */
  at: string;
  /** `algo-1`; '' when the stream name does not contain it. */
  host: string;
  message: string;
}

/** A session that is ready for the caller. The token is a secret: it grants access to the shell. */
export interface ShellAnswer extends OfRun {
  trainingJobName: string;
  /** Input of StartSession, which session-manager-plugin requires in addition to the response. */
  request: { Target?: string; DocumentName?: string; Parameters?: Record<string, string[]>; Reason?: string };
  /** Null until the host is connected to Session Manager. */
  session: { SessionId: string; StreamUrl: string; TokenValue: string } | null;
}

/** Also returned for an invalid file: `ok` means that the check was made. */
export interface ValidateAnswer {
  ok: true;
  isValid: boolean;
  issues: Issue[];
  /** `code.source` of the run, which the caller archives if it is a folder; null when the file could not be read. */
  codeSource: string | null;
}

/** The output of `slipway plan --json`; this module does not depend on the planner. */
export interface PlanAnswer {
  ok: true;
  plan: { fits: string };
}

/** A page may be empty even if more pages follow. */
export interface LogAnswer extends OfRun {
  trainingJobName: string;
  events: LogEventAnswer[];
  nextToken?: string;
}

/** Every answer of the control function; `ok: false` means that the request was rejected. */
export type ControlAnswer =
  | LogAnswer
  | ShellAnswer
  | NoteAnswer
  | ReleaseAnswer
  | DeleteAnswer
  | ({ ok: true } & EventsAnswer)
  | Refusal
  | ValidateAnswer
  | PlanAnswer
  | IntentAnswer
  | StartAnswer
  | DesiredAnswer
  | ({ ok: true } & StatusAnswer)
  | { ok: true; runs: StatusAnswer[] };
