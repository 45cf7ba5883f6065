import { z } from 'zod';
import { sha256 } from '../spec/formats/sha256';
import { lineageSchema } from './lineage';

/** Payloads of the control function. The team is never among them: it comes from the alias that was invoked. */

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
/** Ends the warm pool that the last job of the run left. */
const release = z.strictObject({ action: z.literal('release'), runId });
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
const time = z.iso.datetime({ precision: 3 });
/** A training plan that the caller has read with rights of its own: control may not. */
const trainingPlan = z.strictObject({
  kind: z.enum(['training-plan-on-offer', 'own-training-plan']),
  id: z.string().max(256),
  /** Spans of time in which its instances are there. */
  blocks: z.array(z.strictObject({ from: time, to: time })).max(50),
  instances: z.int().min(0),
  /** What it would cost now, whole; 0 for one that is paid, null = not in dollars. */
  usd: z.number().min(0).nullable(),
  note: z.string().max(512).optional(),
});
/** Memory, speed, time and cost; nothing is written. */
const plan = z.strictObject({
  action: z.literal('plan'),
  ...runText,
  /** Asks for every way to be done by this time instead. */
  by: time.optional(),
  trainingPlans: z.array(trainingPlan).max(200).default([]),
});

const jobName = z.string().min(1).max(63);
/** What DescribeTrainingJob says of a job; control may not read weights, and a card says only what the caller may see. */
const job = z.strictObject({
  trainingJobName: jobName,
  instances: z.array(z.strictObject({ instanceType: z.string().max(64), count: z.int().min(0) })).max(16),
  isSpot: z.boolean(),
  billableSeconds: z.number().min(0).nullable(),
});
/** The model card of a run, over what the caller has read with rights of its own; nothing is written. */
const card = z.strictObject({
  action: z.literal('card'),
  runId,
  /** Where the weights will lie. */
  weights: z.strictObject({
    uri: z.string().max(2048),
    files: z.array(z.strictObject({ name: z.string().min(1).max(1024), bytes: z.int().min(0) })).max(10_000),
  }),
  /** Progress lines that a card is made of: first and last step, first step of each attempt, newest evaluation, newest EFA verdict. */
  lines: z
    .array(z.strictObject({ at: time, attempt: z.int().min(1), message: z.string().max(300_000) }))
    .max(100_000)
    .nullable(),
  /** null = they could not be described. */
  jobs: z.array(job).max(100_000).nullable(),
  lineage: lineageSchema,
});

/** Every payload that the control function takes; unknown fields are refused, and a refusal names the field of the action that was meant. */
export const controlRequestSchema = z.discriminatedUnion('action', [
  z.discriminatedUnion('confirm', [confirmation, intent]),
  stop,
  resume,
  release,
  status,
  list,
  logs,
  events,
  shell,
  note,
  validate,
  plan,
  card,
]);
/** The payloads that change nothing and read no run file: `audit` takes these alone. */
export const readRequestSchema = z.discriminatedUnion('action', [status, list, events, logs]);
/** Actions of those payloads. */
export const READ_ACTIONS: readonly string[] = readRequestSchema.options.map(({ shape }) => shape.action.value);

/** A payload that changes nothing. */
export type ReadRequest = z.output<typeof readRequestSchema>;
/** Asks for schema and rules of a run file. */
export type ValidateRequest = z.output<typeof validate>;
/** Asks for memory, speed, time and cost of a run file. */
export type PlanRequest = z.output<typeof plan>;
/** Asks for the model card of a run. */
export type CardRequest = z.output<typeof card>;
/** A payload after its defaults were filled in. */
export type ControlRequest = z.output<typeof controlRequestSchema>;
/** First call of a start: what shall run, and which uploads will follow. */
export type StartRequest = z.output<typeof intent>;
/** Second call of a start: the uploads are in S3. */
export type ConfirmRequest = z.output<typeof confirmation>;
/** Asks for one page of the log of one attempt. */
export type LogRequest = z.output<typeof logs>;
/** Asks for runs of the team, newest first. */
export type ListRequest = z.output<typeof list>;
/** Asks for a session into one host of a live run. */
export type ShellRequest = z.output<typeof shell>;
/** What a caller writes: defaults may be left out. */
export type ControlPayload = z.input<typeof controlRequestSchema>;

/** State of a run as people see it; the last three are its ends. */
export type RunState = (typeof RUN_STATES)[number];
