import { z } from 'zod';
import type { Issue } from '../spec/issue';
import { sha256 } from '../spec/sha256';

/** Payloads and answers of the control function. The team is never among them: it comes from the alias that was invoked. */

export const RUN_STATES = [
  'queued',
  'submitting',
  'pending',
  'running',
  'stopping',
  'resuming',
  'completed',
  'failed',
  'stopped',
] as const;

const runId = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?$/, 'must be a run id such as pretrain-261101090000');

/** One archive that the caller will upload, by its digest. */
const upload = z.strictObject({
  sha256,
  bytes: z
    .int()
    .min(1)
    .max(5 * 1024 ** 3),
});

const noteText = z.string().min(1).max(1000);

const intent = z.strictObject({
  action: z.literal('start'),
  /** The run file's text; control reads it again and trusts nothing that was computed elsewhere. */
  runFile: z.string().min(1).max(200_000),
  /** `--set` overrides, in order. */
  overrides: z.array(z.string().max(4096)).max(100).default([]),
  /** Digest of the code archive; absent when the run brings no code of its own. */
  code: upload.optional(),
  requirements: upload.optional(),
  /** Repeating a start with the same id finds the run that the first one made. */
  clientRequestId: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1-64 letters, digits, hyphens or underscores'),
  runId: runId.optional(),
  /** Earliest time at which it may start; absent = as soon as there is room. */
  startAt: z.iso.datetime({ precision: 3 }).optional(),
  /** What a person wants to find the run by later. */
  note: noteText.optional(),
  /** The caller has seen that the price is not known and goes on. */
  acceptsUnknownPrice: z.boolean().default(false),
  confirm: z.literal(false).optional(),
});

/** Second call of a start: the uploads are there. */
const confirmation = z.strictObject({ action: z.literal('start'), runId, confirm: z.literal(true) });
const stop = z.strictObject({ action: z.literal('stop'), runId, reason: z.string().max(512).optional() });
const resume = z.strictObject({ action: z.literal('resume'), runId });
const status = z.strictObject({
  action: z.literal('status'),
  runId,
  timeline: z.boolean().default(false),
  /** Whether the answer says what the run was launched with. */
  configuration: z.boolean().default(false),
});
const list = z.strictObject({
  action: z.literal('list'),
  limit: z.int().min(1).max(200).default(50),
  /** Only runs in one of these states. */
  states: z.array(z.enum(RUN_STATES)).max(RUN_STATES.length).optional(),
  /** Only runs with all of these tags: `key` or `key=value`. */
  tags: z.array(z.string().min(1).max(512)).max(10).optional(),
  /** Only runs whose id, name, note, reason or a tag has this text, whatever its case. */
  search: z.string().min(1).max(256).optional(),
});
const note = z.strictObject({ action: z.literal('note'), runId, text: noteText });

/** One page of the log of one attempt. */
const logs = z.strictObject({
  action: z.literal('logs'),
  runId,
  /** Number of the attempt, from 1. */
  attempt: z.int().min(1).max(99_999),
  /** One host only: 2 for `algo-2`. */
  host: z.int().min(1).max(9999).optional(),
  /** Epoch milliseconds; older lines are left out. */
  since: z.int().min(0).optional(),
  /** Only the driver's and the trainer's own lines, which reports are made of. */
  progressOnly: z.boolean().default(false),
  /** Of the page before. */
  nextToken: z.string().max(8192).optional(),
});

/** One page of the timeline of a run, or of the team's runs. */
const events = z.strictObject({
  action: z.literal('events'),
  /** Absent: all runs of the team that are not over, or were not at `since`. */
  runId: runId.optional(),
  /** ISO time of the oldest line. */
  since: z.iso.datetime({ precision: 3 }).optional(),
  /** `next` of the page before. */
  after: z
    .string()
    .regex(/^\d{4}-\d\d-\d\dT[\d:.]+Z#[\d.]+$/, 'must be what the page before gave as next')
    .optional(),
  limit: z.int().min(1).max(500).default(200),
});

/** A session into one host of a live run. */
const shell = z.strictObject({
  action: z.literal('shell'),
  runId,
  /** 2 for `algo-2`. */
  host: z.int().min(1).max(9999).default(1),
  /** One command instead of an interactive shell; Session Manager hands it to the shell of the container. */
  command: z.string().min(1).max(4096).optional(),
});

/** A run file and its overrides, as `start` takes them. */
const runText = { runFile: intent.shape.runFile, overrides: intent.shape.overrides };
/** Schema and rules; nothing is written. */
const validate = z.strictObject({ action: z.literal('validate'), ...runText });
/** Memory, speed, time and cost; nothing is written. */
const plan = z.strictObject({ action: z.literal('plan'), ...runText });

export const controlRequestSchema = z.union([
  confirmation,
  intent,
  stop,
  resume,
  status,
  list,
  logs,
  events,
  shell,
  note,
  validate,
  plan,
]);
export type ValidateRequest = z.output<typeof validate>;
export type PlanRequest = z.output<typeof plan>;
export type ControlRequest = z.output<typeof controlRequestSchema>;
export type StartRequest = z.output<typeof intent>;
export type ConfirmRequest = z.output<typeof confirmation>;
export type LogRequest = z.output<typeof logs>;
export type ListRequest = z.output<typeof list>;
export type ShellRequest = z.output<typeof shell>;
/** What a caller writes: defaults may be left out. */
export type ControlPayload = z.input<typeof controlRequestSchema>;

export type RunState = (typeof RUN_STATES)[number];
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

export interface QuotaAnswer {
  code: string;
  name: string;
  needed: number;
  limit: number | null;
  inUse: number | null;
  verdict: 'enough' | 'short' | 'unknown';
}

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
}

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

export interface EventsAnswer {
  /** First to last. */
  events: EventAnswer[];
  /** Where the next page begins; null at the end. */
  next: string | null;
}

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
  spendUsd: number | null;
  /** Absent where the run has none; `left` is null while no job says it. */
  spareInstances?: { left: number | null; of: number };
  queuePosition: number | null;
  /** The live job is asked to save and leave; `isRead` once its driver says so. Absent while nobody asks. */
  handOver?: { why: 'preempted' | 'resized'; at: string; isRead: boolean };
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

export interface IntentAnswer {
  ok: true;
  runId: string;
  uploads: UploadAnswer[];
  issues: Issue[];
  quota: QuotaAnswer[];
}

export interface StartAnswer {
  ok: true;
  runId: string;
  state: RunState;
  queuePosition: number | null;
  trainingJobName: string | null;
  trainingJobArn: string | null;
}

export interface DesiredAnswer {
  ok: true;
  runId: string;
  desiredState: DesiredState;
  /** State of the run when the wish came. Absent from launchers of older versions, as is `changed`. */
  state?: RunState;
  /** False when the wish changed nothing: the run was over, or the same was wanted before. */
  changed?: boolean;
}

export interface NoteAnswer {
  ok: true;
  runId: string;
  note: string;
}

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

/** Numbers of `slipway plan --json`; this module knows nothing of the planner. */
export interface PlanAnswer {
  ok: true;
  plan: { fits: string };
}

/** A page may be empty and have a next one. */
export interface LogAnswer {
  ok: true;
  runId: string;
  trainingJobName: string;
  events: LogEventAnswer[];
  nextToken?: string;
}

export type ControlAnswer =
  | LogAnswer
  | ShellAnswer
  | NoteAnswer
  | ({ ok: true } & EventsAnswer)
  | Refusal
  | ValidateAnswer
  | PlanAnswer
  | IntentAnswer
  | StartAnswer
  | DesiredAnswer
  | ({ ok: true } & StatusAnswer)
  | { ok: true; runs: StatusAnswer[] };
