import { z } from 'zod';
import { MAX_STEP } from '../../core/config/formats/numbers';
import { resolveRun } from '../../core/config/resolve-run';
import { RUN_STATES } from '../../core/contracts/control';
import type { TimelineEvent } from '../../core/lifecycle/action';
import type { GpuEvidence } from '../../core/lifecycle/health/known-gpus';
import {
  type Attempt,
  FAILURE_CLASSES,
  freshBudgets,
  type RunPolicy,
  type RunRecord,
} from '../../core/lifecycle/record';
import type { QueueDocument, RunIntent } from './items';
import { fromStoredNames } from './stored-names';

/** Documents of the run table as they are read: a restore, an edit by hand or another version may have left anything in them. */

/** An item that cannot be read, with its run and team as its key and attributes name them. */
export class UnreadableItem extends Error {
  override readonly name = 'UnreadableItem';
  constructor(
    readonly runId: string,
    readonly team: string,
    /** `RUN` or `INTENT`. */
    readonly item: string,
    readonly why: string,
  ) {
    super(`item ${item} of run ${runId} cannot be read: ${why}`);
  }
}

/** Year 0 to 2100, as far as a calendar date is made of it. */
const time = z.number().min(0).max(4.2e12);
const count = z.number().min(0).max(1e9);
const amount = z.number().min(-1e12).max(1e12).nullable();
const step = z.number().min(0).max(MAX_STEP).nullable();
const text = z.string();
const loose = z.looseObject;

const checkpoint = loose({ uri: text, step: z.number().min(0).max(MAX_STEP), attempt: z.number().nullable() });
const times = loose({
  number: count,
  firstStep: step,
  firstStepAt: time.nullable(),
  step,
  stepAt: time.nullable(),
  endedAt: time.nullable(),
});
const progress = loose({
  step,
  phase: text,
  heartbeatAt: time,
  movedAt: time,
  beganAt: time.optional(),
  starts: z.array(times).optional(),
  vitals: loose({ stepsPerHour: amount, usualStepsPerHour: amount, restarts: count }).optional(),
});
const request = loose({
  why: text,
  at: time,
  sentAt: time.optional(),
  acceptedAt: time.optional(),
  isTooLate: z.boolean().optional(),
  text,
});
const pool = loose({ usdPerHour: amount, since: time, until: time });
const instances = loose({ instanceType: text, instanceCount: count });

const over = loose({
  kind: z.literal('present'),
  arn: text,
  status: text,
  secondaryStatus: text,
  failureReason: text,
  createdAt: time,
  endedAt: time.optional(),
  identity: z.enum(['ours', 'foreign', 'unread']),
});

const attempt = loose({
  number: z.int().min(1).max(9999),
  jobName: text,
  phase: z.enum(['intent', 'created', 'ended']),
  capacityOptionId: text,
  resumeFrom: checkpoint.nullable(),
  intentAt: time,
  createTries: count,
  lastCreateAt: time.optional(),
  jobCreatedAt: time.optional(),
  undescribedSince: time.optional(),
  silentHeartbeat: time.optional(),
  unreadSince: time.optional(),
  unlistedSince: time.optional(),
  absentSince: time.optional(),
  over: over.optional(),
  aliveAt: time.optional(),
  suspectedHangAt: time.optional(),
  acceptedAt: time.optional(),
  files: loose({
    heartbeat: text,
    checkpoints: loose({ prefix: text, marker: text.optional() }).optional(),
  }).optional(),
  status: text,
  secondaryStatus: text,
  trainingStartedAt: time.optional(),
  trainingSince: time.optional(),
  pauses: loose({ ms: z.number(), since: time.optional() }).optional(),
  selected: instances.optional(),
  committedAtStart: step,
  progress: progress.optional(),
  firstStep: step,
  lastStep: step,
  stop: request.optional(),
  handOver: request.optional(),
  endedAt: time.optional(),
  failureClass: z.enum([...FAILURE_CLASSES, 'completed', 'stopped']).optional(),
  reason: text,
  costUsd: amount,
});

const option = loose({
  id: text,
  instances: z.array(instances).min(1),
  usage: z.enum(['training', 'spot', 'training-plan', 'processing']),
  usdPerHour: amount,
  alternatives: z.array(instances).optional(),
});

const record = loose({
  runId: text,
  name: text,
  team: text,
  environment: text,
  kind: z.enum(['training', 'processing']),
  version: z.int().min(1),
  createdAt: time,
  state: z.enum(RUN_STATES),
  desired: z.enum(['run', 'stop']),
  reason: text,
  confirmed: z.boolean(),
  admitted: z.boolean(),
  admittedAt: time.optional(),
  priority: z.number(),
  after: z.array(text),
  policy: loose({
    maxAttempts: count,
    maxRuntimeSeconds: count,
    maxCostUsd: amount,
    capacityBudgetSeconds: count,
    startupMinutes: count,
    silenceMinutes: count,
    seesSteps: z.boolean(),
    seesCommits: z.boolean(),
    checkpointIntervalSeconds: count,
    capacityOptions: z.array(option).min(1),
    keepsCheckpoints: z.boolean(),
    writesHeartbeats: z.boolean(),
    keepAliveSeconds: count,
    spareInstances: count,
    lossPolicy: z.enum(['stop', 'rollback']),
    preemptible: z.boolean(),
    totalSteps: count.optional(),
    pendingSeconds: count.optional(),
  }),
  tags: z.record(text, text).optional(),
  note: text.optional(),
  requestId: text.optional(),
  budgets: loose({
    failures: count,
    stale: count,
    stalePlatform: count,
    byClass: z.record(text, count),
    capacitySince: time.optional(),
    capacityTries: count,
  }),
  attempt: attempt.optional(),
  capacityOptionId: text,
  notBefore: time.optional(),
  committed: checkpoint.nullable(),
  badCheckpoints: z.array(text),
  skips: z.array(loose({})).optional(),
  spentUsd: amount,
  spotShare: z.number().optional(),
  warmPool: pool.optional(),
  leftPool: pool.optional(),
  filesDeletedAt: time.optional(),
  earlierPools: z
    .array(pool.extend({ bookedUntil: time, attempt: loose({ number: count, jobName: text }) }))
    .optional(),
  queuedAt: time,
  reservation: loose({ capacityOptionId: text, since: time }).optional(),
  sizeFailedAt: time.optional(),
  preemptedAt: time.optional(),
  endedAt: time.optional(),
  restarts: z.array(time).optional(),
  alerts: z.array(text),
  outbox: z.array(loose({ id: text, alert: text, text, runbook: text, at: time })),
});

const intent = loose({
  spec: loose({ compute: loose({}), checkpoints: loose({ s3: text }), limits: loose({}), code: loose({}) }),
  code: loose({ uri: text }).nullable(),
  driver: loose({ uri: text, hash: text }),
  secret: text,
});

const line = loose({ at: time, what: text, text, evidence: loose({}) });
const byTeam = z.record(text, z.record(text, z.number()));
const queue = loose({
  usage: loose({ at: z.number(), hours: byTeam, held: byTeam }),
  nextCreateAt: time.optional(),
  shares: z.record(text, z.number()),
});
const names = z.array(text);
const digests = z.record(text, text);
const gpuEvidence = loose({
  uuid: text,
  team: text,
  kind: z.enum(['gpu', 'host', 'passed']),
  at: time,
  runId: text,
  jobName: text,
  host: text,
  reason: text,
});

/** The value itself, once it has the shape; its own type says more than the schema. Throws what is wrong first. */
function checked<T>(schema: z.ZodType, value: T): T {
  const { error } = schema.safeParse(value);
  if (!error) return value;
  const [first] = error.issues;
  throw new Error(`${first?.path.join('.') || 'the document'}: ${first?.message}`);
}

/** The record in a document. Throws when it is not one. */
export const readRecord = (json: string): RunRecord => checked(record, migrateRecord(JSON.parse(json) as RunRecord));

/** The intent in a document. Throws when it is not one. */
export const readIntent = (json: string): RunIntent => checked(intent, migrateIntent(JSON.parse(json) as RunIntent));

/** An attempt in a document; undefined when it is not one. */
export const findAttempt = (json: string): Attempt | undefined => orUndefined<Attempt>(attempt, json, fromStoredNames);

/** A timeline event in a document; undefined when it is not one. */
export const findLine = (json: string): TimelineEvent | undefined => orUndefined<TimelineEvent>(line, json);

/** A list of names in a document; undefined when it is not one. */
export const findNames = (json: string) => orUndefined<string[]>(names, json);

/** Digests by name in a document; undefined when it has none. */
export const findDigests = (json: string) => orUndefined<Record<string, string>>(digests, json);

/** What a job has reported about a GPU; undefined when the document is not that. */
export const findGpuEvidence = (json: string) => orUndefined<GpuEvidence>(gpuEvidence, json);

/** The state of the queue in a document; undefined when it is not one: the next pass. */
export const findQueueDocument = (json: string) => orUndefined<QueueDocument>(queue, json);

function orUndefined<T>(schema: z.ZodType, json: string, migrate = (value: T): T => value): T | undefined {
  if (json === '') return undefined;
  try {
    return checked(schema, migrate(JSON.parse(json) as T));
  } catch {
    return undefined;
  }
}

/**
 * Upgrades an intent to the current format. Existing values stay; missing fields get the current defaults, computed from the run file as
 * written, which every intent contains.
 */
function migrateIntent(intent: RunIntent): RunIntent {
  const { written } = intent.spec;
  return written ? { ...intent, spec: fill(intent.spec, resolveRun(written)) } : intent;
}

/**
 * Upgrades a record to the current format: lists, counters and states that an older version did not
 * write are empty, and settings that it did not know have the values that it acted by.
 */
function migrateRecord(stored: RunRecord): RunRecord {
  const record = fromStoredNames(stored);
  const defaults: Omit<Partial<RunRecord>, 'policy'> & { policy: Partial<RunPolicy> } = {
    policy: {
      keepsCheckpoints: true,
      writesHeartbeats: record?.policy?.seesSteps,
      keepAliveSeconds: 0,
      spareInstances: 0,
      lossPolicy: 'stop',
      preemptible: false,
    },
    queuedAt: record?.createdAt,
    badCheckpoints: [],
    alerts: [],
    outbox: [],
    after: [],
    priority: 0,
    budgets: freshBudgets(),
    committed: null,
    spentUsd: null,
  };
  return fill(record, defaults as RunRecord);
}

/** Adds to `stored` the fields that it lacks, from `defaults`, section by section. Lists are not merged; null counts as a value. */
function fill<T>(stored: T, defaults: T): T {
  if (stored === undefined) return defaults;
  if (!isGroup(stored) || !isGroup(defaults)) return stored;
  const keys = new Set([...Object.keys(stored), ...Object.keys(defaults)]);
  const filled = [...keys].map((key) => [key, fill(stored[key], defaults[key])]);
  return Object.fromEntries(filled.filter(([, value]) => value !== undefined)) as T;
}

const isGroup = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
