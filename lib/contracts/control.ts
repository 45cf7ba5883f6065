import type { Issue } from '../spec/issue';
import type { RunState } from './control-requests';

/** Answers of the control function; its payloads are in control-requests.ts. */
export * from './control-requests';

/** What a person wants of a run: `stop` stays until `resume`. */
export type DesiredState = 'run' | 'stop';

const ENDED: readonly (RunState | undefined)[] = ['completed', 'failed', 'stopped'];

/** Whether the run is completed, failed or stopped; a failed or stopped one may be resumed. */
export const hasEnded = ({ state }: { readonly state?: RunState }): boolean => ENDED.includes(state);

/** A PUT that the caller must make before it confirms; the URL is good for these headers and this digest only. */
export interface UploadAnswer {
  key: string;
  url: string;
  headers: Record<string, string>;
  sha256: string;
}

/** One quota that a run needs, in the quota's own unit; `limit` and `inUse` are null when they could not be read. */
export interface QuotaAnswer {
  code: string;
  name: string;
  needed: number;
  limit: number | null;
  inUse: number | null;
  verdict: 'enough' | 'short' | 'unknown';
}

/** One SageMaker job of a run. Times are ISO 8601, steps count from 1. */
export interface AttemptAnswer {
  trainingJobName: string;
  status: string;
  secondaryStatus: string;
  firstStep: number | null;
  lastStep: number | null;
  reason: string;
  startedAt: string | null;
  endedAt: string | null;
  /** Instances that it asked for, or that the service chose; absent from launchers of older versions. */
  instanceCount?: number;
  /** Hours that its GPUs were held for; 0 without GPUs, absent from launchers of older versions and where the type is not known. */
  gpuHours?: number;
  /** Mean utilisation of its GPUs, 0 to 100; absent where no host tells it. */
  gpuUtilizationPercent?: number;
}

/** What happened to a run at one time (ISO 8601), in words and with the values it rests on. */
export interface TimelineAnswer {
  at: string;
  what: string;
  text: string;
  evidence: Record<string, unknown>;
}

/** One line of the timeline of a run. */
export interface EventAnswer extends TimelineAnswer {
  runId: string;
  /** Its place in the order of time. */
  cursor: string;
}

/** One page of timelines. */
export interface EventsAnswer {
  /** First to last. */
  events: EventAnswer[];
  /** Where the next page begins; null at the end. */
  next: string | null;
}

/** A run as `status` and `list` show it. Money in USD, times in ISO 8601; null where a value is not known yet. */
export interface StatusAnswer {
  runId: string;
  name: string;
  team: string;
  state: RunState;
  desiredState: DesiredState;
  reason: string;
  /** Number of the newest attempt; null before there is one. Absent from launchers of older versions. */
  attempt?: number | null;
  /** All attempts in `status`; the newest alone in `list`. */
  attempts: AttemptAnswer[];
  committedStep: number | null;
  step: number | null;
  /** When the driver saw that step, by its clock; null where nothing says so. */
  stepAt?: string | null;
  loss: number | null;
  goodput: number | null;
  /** Share of the run's steps that are made, 0 to 100; null where the file names none. Absent in `list` and from launchers of older versions. */
  progressPercent?: number | null;
  /** When it will be done by its own speed and failures; null while no step was made, and once it is over. */
  etaAt?: string | null;
  /** Earliest and latest end, four times of five. */
  etaInterval80?: [string, string] | null;
  /** How often training was interrupted, which the interval rests on: 0 = as seldom as runs of others. Absent as `progressPercent` is. */
  interruptions?: number;
  spendUsd: number | null;
  /** Absent where the run has none; `left` is null while no job says it. */
  spareInstances?: { left: number | null; of: number };
  queuePosition: number | null;
  /** The live job is asked to save and leave; `isRead` once its driver says so. Absent if there is no request. */
  handOver?: { why: 'preempted' | 'resized'; at: string; isRead: boolean };
  /** Instances that the service keeps after the last job, and bills, until then. Absent while there are none. */
  warmPool?: { until: string; usdPerHour: number | null };
  /** Tags of the run file. Absent where it has none, as are the four after it. */
  tags?: Record<string, string>;
  /** What a person wrote about it. */
  note?: string;
  /** Runs that must be completed before it starts. */
  after?: string[];
  /** It may be asked to save and leave for another run. */
  preemptible?: boolean;
  configuration?: RunConfiguration;
  timeline?: TimelineAnswer[];
  /** Oldest lines of the timeline that the answer has no room for. @default 0 */
  timelineOmitted?: number;
}

/** What every attempt of a run is made from. */
export interface RunConfiguration {
  /** The run file with its overrides and defaults. */
  spec: Record<string, unknown>;
  /** Digest of the code archive; null for built-in code. */
  codeSha256: string | null;
  /** Hash of driver and built-in trainer. */
  driverHash: string;
  /** The image that the environment had built at the launch. */
  trainingImageUri: string | null;
}

/** A refusal is an answer, not an error of the function: exit code 1 of the command line. */
export interface Refusal {
  ok: false;
  issues: Issue[];
  quota?: QuotaAnswer[];
}

/** A start was accepted: these uploads must follow, then the confirmation. */
export interface IntentAnswer {
  ok: true;
  runId: string;
  uploads: UploadAnswer[];
  issues: Issue[];
  quota: QuotaAnswer[];
}

/** The run is in the queue, or its job was created at once. */
export interface StartAnswer {
  ok: true;
  runId: string;
  state: RunState;
  queuePosition: number | null;
  trainingJobName: string | null;
  trainingJobArn: string | null;
}

/** The answer to `stop` and `resume`. */
export interface DesiredAnswer {
  ok: true;
  runId: string;
  desiredState: DesiredState;
  /** State of the run when the wish came. Absent from launchers of older versions, as is `changed`. */
  state?: RunState;
  /** False when the wish changed nothing: the run was over, or the same was wanted before. */
  changed?: boolean;
}

/** What became of the warm pool that the last job of a run left. */
export interface ReleaseAnswer {
  ok: true;
  runId: string;
  /** null = the run has had no training job. */
  trainingJobName: string | null;
  /** Whether this call ended it. */
  released: boolean;
  /** What the service said before: null where the job has no warm pool. */
  warmPoolStatus: string | null;
  /** The job that has taken it over; null where none has. */
  reusedBy: string | null;
  /** What it would have cost from now on; null where the price is not known. */
  savedUsd: number | null;
}

/** The note as it was written. */
export interface NoteAnswer {
  ok: true;
  runId: string;
  note: string;
}

/** One line of a job's log. */
export interface LogEventAnswer {
  /** Tells one event from another over repeated reads. */
  id: string;
  /** ISO 8601. */
  at: string;
  /** `algo-1`; '' when the stream's name does not say. */
  host: string;
  message: string;
}

/** A session that waits for its caller. The token is a secret: it is all that the shell asks for. */
export interface ShellAnswer {
  ok: true;
  runId: string;
  trainingJobName: string;
  /** Input of StartSession, which session-manager-plugin asks for beside the answer. */
  request: { Target?: string; DocumentName?: string; Parameters?: Record<string, string[]>; Reason?: string };
  /** Null while the host is not connected to Session Manager yet. */
  session: { SessionId: string; StreamUrl: string; TokenValue: string } | null;
}

/** An answer also where the file is not valid: `ok` says that it was judged. */
export interface ValidateAnswer {
  ok: true;
  isValid: boolean;
  issues: Issue[];
  /** `code.source` of the run, which the caller archives where it is a folder; null where the file could not be read. */
  codeSource: string | null;
}

/** Numbers of `slipway plan --json`; this module does not depend on the planner. */
export interface PlanAnswer {
  ok: true;
  plan: { fits: string };
}

/** The offers of `slipway plan --by --json`, and which training plans the caller may look for and send with the next call. */
export interface DatePlanAnswer {
  ok: true;
  byDate: { by: string; offers: object[] };
  /** null for clusters of several instance types. */
  needs: { instanceType: string; instances: number; hours: number } | null;
}

/** The model card of a run, as `slipway publish` writes it. */
export interface CardAnswer {
  ok: true;
  /** Name beside the weights. */
  file: string;
  /** Markdown. */
  card: string;
  /** `ModelCard.ModelCardContent` of a version in the model registry: JSON. */
  registryCard: string;
}

/** A page may be empty and have a next one. */
export interface LogAnswer {
  ok: true;
  runId: string;
  trainingJobName: string;
  events: LogEventAnswer[];
  nextToken?: string;
}

/** Every answer of the control function; `ok: false` is a refusal. */
export type ControlAnswer =
  | LogAnswer
  | ShellAnswer
  | NoteAnswer
  | ReleaseAnswer
  | ({ ok: true } & EventsAnswer)
  | Refusal
  | ValidateAnswer
  | PlanAnswer
  | DatePlanAnswer
  | CardAnswer
  | IntentAnswer
  | StartAnswer
  | DesiredAnswer
  | ({ ok: true } & StatusAnswer)
  | { ok: true; runs: StatusAnswer[] };
