import { z } from 'zod';
import { shiftSchema, timeSchema } from './duration';

/** A scenario file as written (docs/simulate.md). All times become seconds since its start. */

const text = z.string().min(1);
const minutes = z.number().nonnegative();
const count = z.int().nonnegative();
/** A file's path, relative to the scenario, or its content. */
const fileOrContent = z.union([text, z.record(z.string(), z.unknown())], 'must be a path, or the content of the file');
/** The run id begins with it, so it has the form of one and leaves room in the 63 characters of a job's name. */
const runId = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,29}[a-z0-9])?$/, 'must be 1-31 lower-case letters, digits or hyphens, such as a');
const job = z.string().regex(/^[a-z0-9][a-z0-9-]*#[1-9]\d*$/, 'must be <run>#<attempt>, such as a#1');
const operation = z
  .string()
  .regex(/^[a-z][a-z0-9-]*:([A-Za-z0-9]+|\*)$/, 'must be <service>:<Operation>, such as s3:GetObject');

const limit = z.union(
  [z.number().nonnegative(), z.array(z.strictObject({ from: timeSchema, value: z.number().nonnegative() })).min(1)],
  'must be a number, or a list of {from, value}',
);

const capacity = z.strictObject({
  instanceType: text,
  spot: z.boolean().optional(),
  from: timeSchema.optional(),
  to: timeSchema.optional(),
  instances: count,
});

const outside = z.strictObject({
  at: timeSchema.optional(),
  to: timeSchema.optional(),
  instanceType: text,
  instances: z.int().min(1),
  spot: z.boolean().optional(),
});

const run = z.strictObject({
  at: timeSchema.optional(),
  id: runId,
  file: fileOrContent,
  set: z.record(z.string(), z.unknown()).optional(),
  team: text.optional(),
  trainsHours: z.number().positive().optional(),
  commitEveryMinutes: z.number().positive().optional(),
  secondsPerStep: z.number().positive().optional(),
  startMinutes: minutes.optional(),
  checkpointObjects: z.int().min(1).max(1_000_000).optional(),
});

const call = z.strictObject({ at: timeSchema.optional(), do: z.enum(['stop', 'resume', 'deploy']), run: runId });

/** One strict object for all kinds, so that an unknown key is named with its path; `faultKeys` says what goes together. */
const fault = z.strictObject({
  at: timeSchema.optional(),
  to: timeSchema.optional(),
  call: operation.optional(),
  key: text.optional(),
  nth: z.int().min(1).optional(),
  error: text.optional(),
  answerLost: z.literal(true).optional(),
  takesSeconds: z.number().positive().optional(),
  empty: z.literal(true).optional(),
  job: job.optional(),
  ends: z.enum(['Completed', 'Failed', 'Stopped']).optional(),
  reason: z.string().max(1024).optional(),
  secondaryStatus: text.optional(),
  status: z.literal('Interrupted').optional(),
  minutes: minutes.optional(),
  hangs: z.literal(true).optional(),
  silent: z.boolean().optional(),
  loses: z.enum(['host', 'gpu', 'network', 'checkpoint']).optional(),
  count: z.int().min(1).optional(),
  stopTakesMinutes: minutes.optional(),
  describeLagSeconds: z.number().nonnegative().optional(),
  indexLagSeconds: z.number().nonnegative().optional(),
  kill: z.enum(['control', 'reconcile']).optional(),
  afterEffect: count.optional(),
  times: z.int().min(1).optional(),
  deleteJob: job.optional(),
  stored: runId.optional(),
  without: z.array(text).min(1).optional(),
  clock: shiftSchema.optional(),
  taken: job.optional(),
  events: z.enum(['lost', 'late']).optional(),
});

const random = z.strictObject({
  runs: count.max(1000).optional(),
  teams: z.int().min(1).optional(),
  faultsPerDay: z.number().nonnegative().max(10_000).optional(),
});

export const scenarioSchema = z.strictObject({
  schema: z.literal(1),
  environment: fileOrContent,
  region: text.optional(),
  limits: z.record(z.string(), limit).optional(),
  capacity: z.array(capacity).optional(),
  outside: z.array(outside).optional(),
  runs: z.array(run).optional(),
  calls: z.array(call).optional(),
  faults: z.array(fault).optional(),
  rates: z.record(z.string(), z.number().positive()).optional(),
  until: timeSchema.optional(),
  random: random.optional(),
});

export type ScenarioFile = z.output<typeof scenarioSchema>;
export type RunEntry = z.output<typeof run>;
export type CallEntry = z.output<typeof call>;
export type Fault = z.output<typeof fault>;
export type CapacityEntry = z.output<typeof capacity>;
export type OutsideEntry = z.output<typeof outside>;
