import { z } from 'zod';
import { MAX_TIME } from '../config/formats/numbers';
import { sha256 } from '../config/formats/sha256';
import { MAX_CHARACTERS, MAX_OVERRIDES } from '../config/reading/limits';

/** Payloads of the control function. They never contain the team: it comes from the alias that was invoked. */

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

const ENDED: readonly (RunState | undefined)[] = ['completed', 'failed', 'stopped'];

/** Whether the run is completed, failed or stopped; a failed or stopped run can be resumed. */
export const hasEnded = ({ state }: { readonly state?: RunState }): boolean => ENDED.includes(state);

const runId = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?$/, 'must be a run id such as pretrain-261101090000');

/** One archive that the caller will upload, identified by its digest. */
const upload = z.strictObject({
  sha256,
  bytes: z
    .int()
    .min(1)
    .max(5 * 1024 ** 3),
});

/** Characters of a note, and of a text that is searched for. */
export const MAX_NOTE = 1000;
export const MAX_SEARCH = 256;

const noteText = z.string().min(1).max(MAX_NOTE);

const intent = z.strictObject({
  action: z.literal('start'),
  /** Text of the run file; control parses and checks it again and does not trust results from the client. */
  runFile: z.string().min(1).max(MAX_CHARACTERS.runFile),
  /** `--set` overrides, in order. */
  overrides: z.array(z.string().max(MAX_CHARACTERS.override)).max(MAX_OVERRIDES).default([]),
  /** Digest of the code archive; absent when the run has no custom code. */
  code: upload.optional(),
  requirements: upload.optional(),
  /** Idempotency token: a repeated start with the same id returns the run that the first one created. */
  clientRequestId: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1-64 letters, digits, hyphens or underscores'),
  runId: runId.optional(),
  /** Earliest start time; absent = as soon as capacity is available. */
  startAt: z.iso
    .datetime({ precision: 3, abort: true })
    .refine((at) => Date.parse(at) <= MAX_TIME, 'must be a time before the year 2100')
    .optional(),
  /** Free text by which users can find the run later. */
  note: noteText.optional(),
  /** The caller accepts that the price is unknown. */
  acceptsUnknownPrice: z.boolean().default(false),
  confirm: z.literal(false).optional(),
});

/** Second call of a start: the uploads are complete. */
const confirmation = z.strictObject({ action: z.literal('start'), runId, confirm: z.literal(true) });
const stop = z.strictObject({ action: z.literal('stop'), runId, reason: z.string().max(512).optional() });
const resume = z.strictObject({ action: z.literal('resume'), runId });
/** Ends the warm pool of the last job of the run. */
const release = z.strictObject({ action: z.literal('release'), runId });
/** Deletes the files of a run that is over; without `confirm` it only says what there is. */
const deletion = z.strictObject({ action: z.literal('delete'), runId, confirm: z.boolean().default(false) });
const status = z.strictObject({
  action: z.literal('status'),
  runId,
  timeline: z.boolean().default(false),
  /** Whether the answer includes the configuration of the run. */
  configuration: z.boolean().default(false),
});
const list = z.strictObject({
  action: z.literal('list'),
  limit: z.int().min(1).max(200).default(50),
  /** Only return runs in one of these states. */
  states: z.array(z.enum(RUN_STATES)).max(RUN_STATES.length).optional(),
  /** Only return runs with all of these tags: `key` or `key=value`. */
  tags: z.array(z.string().min(1).max(512)).max(10).optional(),
  /** Only return runs whose id, name, note, reason or tags contain this text (case-insensitive). */
  search: z.string().min(1).max(MAX_SEARCH).optional(),
});
const note = z.strictObject({ action: z.literal('note'), runId, text: noteText });

/** One page of the log of one attempt. */
const logs = z.strictObject({
  action: z.literal('logs'),
  runId,
  /** Number of the attempt, from 1. */
  attempt: z.int().min(1).max(99_999),
  /** Only return lines of this host: 2 for `algo-2`. */
  host: z.int().min(1).max(9999).optional(),
  /** Epoch milliseconds; older lines are omitted. */
  since: z.int().min(0).optional(),
  /** Only return structured lines of driver and trainer, which reports are built from. */
  progressOnly: z.boolean().default(false),
  /** `nextToken` of the previous page. */
  nextToken: z.string().max(8192).optional(),
});

/** One page of the timeline of a run, or of the team's runs. */
const events = z.strictObject({
  action: z.literal('events'),
  /** Absent = all runs of the team that are live or ended after `since`. */
  runId: runId.optional(),
  /** ISO time of the oldest line; the same for all pages. */
  since: z.iso.datetime({ precision: 3 }).optional(),
  /** `next` of the previous page. */
  after: z
    .string()
    .max(100)
    .regex(/^\d{4}-\d\d-\d\dT[\d:.]+Z#[\d.]+$/, 'must be the value of next from the previous page')
    .optional(),
  limit: z.int().min(1).max(500).default(200),
});

/** Session on one host of a live run. */
const shell = z.strictObject({
  action: z.literal('shell'),
  runId,
  /** 2 for `algo-2`. */
  host: z.int().min(1).max(9999).default(1),
  /** A command to run instead of an interactive shell; Session Manager passes it to the shell of the container. */
  command: z.string().min(1).max(4096).optional(),
});

/** A run file and its overrides, as in `start`. */
const runText = { runFile: intent.shape.runFile, overrides: intent.shape.overrides };
const validate = z.strictObject({ action: z.literal('validate'), ...runText });
const plan = z.strictObject({ action: z.literal('plan'), ...runText });

/** Schema of every payload of the control function. Unknown fields are rejected; the error names the field for the action in question. */
export const controlRequestSchema = z.discriminatedUnion('action', [
  z.discriminatedUnion('confirm', [confirmation, intent]),
  stop,
  resume,
  release,
  deletion,
  status,
  list,
  logs,
  events,
  shell,
  note,
  validate,
  plan,
]);
/** The payloads that change nothing and contain no run file: the only ones that the alias `audit` accepts. */
export const readRequestSchema = z.discriminatedUnion('action', [status, list, events, logs]);
/** Actions of those payloads. */
export const READ_ACTIONS: readonly string[] = readRequestSchema.options.map(({ shape }) => shape.action.value);

export type ReadRequest = z.output<typeof readRequestSchema>;
export type ControlRequest = z.output<typeof controlRequestSchema>;
/** The payload of an action. */
export type RequestOf<Action extends ControlRequest['action']> = Extract<ControlRequest, { action: Action }>;
/** First call of a start: the run to start and the uploads that will follow. */
export type StartRequest = z.output<typeof intent>;
/** Second call of a start: the uploads are in S3. */
export type ConfirmRequest = z.output<typeof confirmation>;
export type ListRequest = z.output<typeof list>;
/** A payload as written by the caller: fields with a default may be omitted. */
export type ControlPayload = z.input<typeof controlRequestSchema>;

/** State of a run, as stored and as displayed to users; the last three are final. */
export type RunState = (typeof RUN_STATES)[number];
