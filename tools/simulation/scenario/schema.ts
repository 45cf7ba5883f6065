import { z } from 'zod';
import { shiftSchema, timeSchema } from './duration';

/** A scenario file as written (docs/simulate.md). All times are converted to seconds since its start. */

const text = z.string().min(1);
const minutes = z.number().nonnegative();
const count = z.int().nonnegative();
/** A file's path, relative to the scenario, or its content. */
const fileOrContent = z.union([text, z.record(z.string(), z.unknown())], 'must be a path, or the content of the file');
/** The run id begins with it, so it has the format of a run id and leaves room within the 63 characters of a job name. */
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
  instanceType: text.meta({ description: 'Instance type.' }),
  spot: z.boolean().optional().meta({ description: 'Whether this is spot capacity. Default: false.' }),
  from: timeSchema.optional().meta({ description: 'When it begins. Default: the start.' }),
  to: timeSchema.optional().meta({ description: 'When it ends. Default: never.' }),
  instances: count.meta({ description: 'Number of instances that are available in this period.' }),
});

const outside = z.strictObject({
  at: timeSchema.optional().meta({ description: 'When they begin. Default: the start.' }),
  to: timeSchema.optional().meta({ description: 'When they end. Default: never.' }),
  instanceType: text.meta({ description: 'Instance type.' }),
  instances: z.int().min(1).meta({ description: 'Number of instances that each of them uses.' }),
  jobs: z.int().min(1).max(5000).optional().meta({ description: 'Number of such jobs. Default: 1.' }),
  spot: z.boolean().optional().meta({ description: 'Whether they are spot instances. Default: false.' }),
  name: text.optional().meta({
    description:
      'Name of the job. One that begins with the environment reaches its event rule. Default: `outside-...`.',
  }),
});

const run = z.strictObject({
  at: timeSchema.optional().meta({ description: 'When the run is launched. Default: the start.' }),
  id: runId.meta({ description: 'ID of the run in this file; the run ID begins with it.' }),
  file: fileOrContent.meta({ description: 'The run file: a path, or its content.' }),
  set: z
    .record(z.string(), z.unknown())
    .optional()
    .meta({ description: 'Overrides of the run file, in the form of `--set`. Default: none.' }),
  team: text.optional().meta({ description: 'Team that launches it. Default: the first team of the environment.' }),
  trainsHours: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'Training time of the whole run in hours. Default: computed from `training.steps`.' }),
  commitEveryMinutes: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'Minutes of training between two checkpoints. Default: 30.' }),
  secondsPerStep: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'Seconds per step with the maximum number of instances of the run. Default: 10.' }),
  startAt: timeSchema
    .optional()
    .meta({ description: 'Earliest start of its first job. Default: as soon as capacity is available.' }),
  note: text.optional().meta({ description: 'Note of the run. Default: none.' }),
  startMinutes: minutes
    .optional()
    .meta({ description: 'Minutes from the start of the instances to the first step, for each job. Default: 10.' }),
  checkpointObjects: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .meta({ description: 'Number of objects in one checkpoint. Default: 2.' }),
});

const call = z.strictObject({
  at: timeSchema.optional().meta({ description: 'When it happens. Default: the start.' }),
  do: z.enum(['stop', 'resume', 'release', 'confirm', 'deploy', 'delete-stack', 'replace-key']).meta({
    description:
      'The operation. `release` terminates the warm pool of the last job of a run. `confirm` sends the confirmation of the code upload a second time. `delete-stack` deletes the stack and `replace-key` updates it with another KMS key; the guards of the stack reject both while runs are active.',
  }),
  run: runId
    .optional()
    .meta({ description: 'The run that the operation applies to. Default: none, for operations on the stack.' }),
  team: text.optional().meta({
    description: 'Team whose alias is called. Default: the team of the run; control rejects other teams.',
  }),
});

/**
 * One strict object for all kinds, so that an unknown key is reported with its path; tools/simulation/scenario/faults.ts checks the
 * combinations.
 */
const fault = z.strictObject({
  at: timeSchema.optional().meta({ description: 'When the fault begins. Default: the start.' }),
  to: timeSchema.optional().meta({ description: 'When it ends. Default: never.' }),
  call: operation.optional().meta({ description: 'A call that fails, `<service>:<Operation>`. Default: none.' }),
  key: text
    .optional()
    .meta({ description: 'With `call`: pattern of the affected keys, with `*` as the wildcard. Default: all.' }),
  nth: z.int().min(1).optional().meta({ description: 'With `call`: only the nth such call. Default: all.' }),
  error: text.optional().meta({ description: 'With `call`: the error code of the response. Default: none.' }),
  answerLost: z
    .literal(true)
    .optional()
    .meta({ description: 'With `call`: the call takes effect, but its response is lost. Default: false.' }),
  takesSeconds: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'With `call`: seconds until the response. Default: the usual duration.' }),
  empty: z
    .literal(true)
    .optional()
    .meta({ description: 'With `call`: the service returns an empty result. Default: false.' }),
  job: job.optional().meta({ description: 'The job that the fault affects, `<run>#<attempt>`. Default: none.' }),
  ends: z
    .enum(['Completed', 'Failed', 'Stopped'])
    .optional()
    .meta({ description: 'With `job`: the status with which the job ends. Default: the job does not end.' }),
  reason: z.string().max(1024).optional().meta({ description: 'With `ends`: the failure reason. Default: none.' }),
  secondaryStatus: text
    .optional()
    .meta({ description: 'With `ends: Stopped`: the secondary status. Default: Stopped.' }),
  status: z.literal('Interrupted').optional().meta({
    description:
      'With `job`: SageMaker interrupts the job and restarts it on other instances. Default: no interruption.',
  }),
  minutes: minutes.optional().meta({
    description: 'With `status` and `events: late`: duration in minutes. Default: 10 with `status`, 5 with `events`.',
  }),
  hangs: z
    .literal(true)
    .optional()
    .meta({ description: 'With `job`: the job makes no further steps. Default: false.' }),
  silent: z
    .boolean()
    .optional()
    .meta({ description: 'With `hangs`: the job also sends no heartbeats. Default: false.' }),
  loses: z
    .enum(['rank', 'host', 'gpu', 'two-hosts', 'network', 'checkpoint'])
    .optional()
    .meta({ description: 'With `job`: the part that fails. Default: none.' }),
  count: z.int().min(1).optional().meta({
    description: 'With `loses: checkpoint`: number of newest checkpoints that cannot be loaded. Default: 1.',
  }),
  stopTakesMinutes: minutes
    .optional()
    .meta({ description: 'With `job`: minutes from StopTrainingJob to Stopped. Default: the usual duration.' }),
  beatsWithout: z.array(text).min(1).optional().meta({
    description: 'With `job`: fields that are missing from its heartbeats, as with an older driver. Default: none.',
  }),
  beats: z.enum(['large', 'garbled', 'wild']).optional().meta({
    description:
      'With `job`: what its heartbeats contain instead: more bytes than one may have, no JSON, or values outside every bound that differ each time. Default: what the driver writes.',
  }),
  describeLagSeconds: z
    .number()
    .nonnegative()
    .optional()
    .meta({ description: 'Seconds by which reads of SageMaker lag behind writes. Default: 0.' }),
  indexLagSeconds: z
    .number()
    .nonnegative()
    .optional()
    .meta({ description: 'Seconds by which the indexes of the run table lag behind the table. Default: 0.' }),
  kill: z
    .enum(['control', 'reconcile'])
    .optional()
    .meta({ description: 'The Lambda function that fails during an invocation. Default: none.' }),
  afterEffect: count.optional().meta({
    description: 'With `kill`: the function fails at the first call after this number of writes. Default: 1.',
  }),
  times: z.int().min(1).optional().meta({ description: 'With `kill`: number of failures. Default: 1.' }),
  deleteJob: job
    .optional()
    .meta({ description: 'A job that is deleted outside Slipway, `<run>#<attempt>`. Default: none.' }),
  stored: runId
    .optional()
    .meta({ description: 'A run whose table item has the format of an older version. Default: none.' }),
  without: z
    .array(text)
    .min(1)
    .optional()
    .meta({ description: 'With `stored`: the fields that do not exist in the older version. Default: none.' }),
  poison: z.enum(['json', 'field', 'null']).optional().meta({
    description:
      'With `stored`: from `at` to `to` the item of the run cannot be read: it is no JSON, lacks a field, or is null. Default: it can be read.',
  }),
  clock: shiftSchema.optional().meta({
    description:
      'Time by which the clock of the Lambda functions is ahead of the clock of the services; negative if behind. Default: 0s.',
  }),
  taken: job
    .optional()
    .meta({ description: 'A job name that another job already uses, `<run>#<attempt>`. Default: none.' }),
  events: z.enum(['lost', 'late']).optional().meta({
    description: 'State-change events are lost, or are delivered late and twice. Default: events are delivered.',
  }),
});

const random = z.strictObject({
  runs: count
    .max(1000)
    .optional()
    .meta({ description: 'Number of runs that are generated from the seed. Default: 0.' }),
  teams: z
    .int()
    .min(1)
    .optional()
    .meta({ description: 'Number of teams that launch them. Default: all teams of the environment.' }),
  faultsPerDay: z
    .number()
    .nonnegative()
    .max(10_000)
    .optional()
    .meta({ description: 'Faults per day that are generated from the seed. Default: 0.' }),
  hostilePerDay: z.number().nonnegative().max(1000).optional().meta({
    description:
      'Faults per day of another kind: hostile heartbeats and failure texts, items that cannot be read, reads that are denied for days, runs with spend caps, create calls in doubt. Default: 0.',
  }),
});

/** The scenario file. */
export const scenarioSchema = z.strictObject({
  schema: z.literal(1).meta({ description: 'Version of the file format.' }),
  environment: fileOrContent.meta({
    description: 'The environment file: a path relative to the scenario, or its content.',
  }),
  region: text.optional().meta({
    description: 'Region; required if the environment has several. Default: the only region of the environment.',
  }),
  limits: z.record(z.string(), limit).optional().meta({
    description:
      'Quotas by name or code: a number, or a list of `{from, value}`. Default: the quotas of a new account.',
  }),
  capacity: z.array(capacity).optional().meta({ description: 'Available capacity. Default: unlimited.' }),
  spotShare: z.number().positive().max(1).optional().meta({
    description:
      'Price of spot instances as a fraction of the on-demand price. Default: the fraction in the price catalog.',
  }),
  outside: z
    .array(outside)
    .optional()
    .meta({ description: 'Jobs in the account that do not belong to Slipway. Default: none.' }),
  runs: z.array(run).optional().meta({ description: 'Runs that are launched. Default: none.' }),
  calls: z.array(call).optional().meta({ description: 'Operations of users. Default: none.' }),
  faults: z.array(fault).optional().meta({ description: 'Faults. Default: none.' }),
  rates: z.record(z.string(), z.number().positive()).optional().meta({
    description:
      'Rate limit of an operation in calls per second, by `<service>:<Operation>`. Default: the published limits.',
  }),
  until: timeSchema.optional().meta({ description: 'When the simulation ends. Default: 720h.' }),
  random: random
    .optional()
    .meta({ description: 'Runs, stops, resumes and faults that are generated from the seed. Default: none.' }),
});

/** A scenario file after schema and defaults. */
export type ScenarioFile = z.output<typeof scenarioSchema>;
/** One entry of `runs`. */
export type RunEntry = z.output<typeof run>;
/** One entry of `calls`. */
export type CallEntry = z.output<typeof call>;
/** One entry of `faults`. */
export type Fault = z.output<typeof fault>;
/** One entry of `capacity`. */
export type CapacityEntry = z.output<typeof capacity>;

/** The JSON Schema of a scenario file as written. */
export const scenarioJsonSchema = (): Record<string, unknown> =>
  z.toJSONSchema(scenarioSchema, { io: 'input', unrepresentable: 'any' }) as Record<string, unknown>;
