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
  instanceType: text.meta({ description: 'Instance type.' }),
  spot: z.boolean().optional().meta({ description: 'Whether this is spot capacity. Default: false.' }),
  from: timeSchema.optional().meta({ description: 'When it begins. Default: the start.' }),
  to: timeSchema.optional().meta({ description: 'When it ends. Default: never.' }),
  instances: count.meta({ description: 'Instances that the service can give in this time.' }),
});

const outside = z.strictObject({
  at: timeSchema.optional().meta({ description: 'When they begin. Default: the start.' }),
  to: timeSchema.optional().meta({ description: 'When they end. Default: never.' }),
  instanceType: text.meta({ description: 'Instance type.' }),
  instances: z.int().min(1).meta({ description: 'How many instances they hold.' }),
  spot: z.boolean().optional().meta({ description: 'Whether they are spot instances. Default: false.' }),
});

const run = z.strictObject({
  at: timeSchema.optional().meta({ description: 'When the run is launched. Default: the start.' }),
  id: runId.meta({ description: 'Id of the run in this file; the run id begins with it.' }),
  file: fileOrContent.meta({ description: 'The run file: a path, or its content.' }),
  set: z
    .record(z.string(), z.unknown())
    .optional()
    .meta({ description: 'Overrides of the run file, as `--set` has them. Default: none.' }),
  team: text.optional().meta({ description: 'Team that launches it. Default: the first team of the environment.' }),
  trainsHours: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'Hours of steps that the whole run needs. Default: what `training.steps` come to.' }),
  commitEveryMinutes: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'Minutes of training between two checkpoints. Default: 30.' }),
  secondsPerStep: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'Seconds of a step on the most instances of the run. Default: 10.' }),
  startAt: timeSchema
    .optional()
    .meta({ description: 'When its first job may start, at the earliest. Default: as soon as there is room.' }),
  note: text.optional().meta({ description: 'What a person writes about it at its start. Default: nothing.' }),
  startMinutes: minutes
    .optional()
    .meta({ description: 'Minutes from the instances to the first step, at every start. Default: 10.' }),
  checkpointObjects: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .meta({ description: 'Objects of one checkpoint. Default: 2.' }),
});

const call = z.strictObject({
  at: timeSchema.optional().meta({ description: 'When it happens. Default: the start.' }),
  do: z.enum(['stop', 'resume', 'release', 'confirm', 'deploy', 'delete-stack', 'replace-key']).meta({
    description:
      'What somebody does. `release` ends the warm pool that the last job of a run left. `confirm` says once more that the code of a start is uploaded. `delete-stack` and `replace-key` are what the guards of the stack refuse under live runs: its deletion, and an update that replaces its key.',
  }),
  run: runId.optional().meta({ description: 'The run that it is done to. Default: none, where the stack is meant.' }),
  team: text.optional().meta({
    description: 'Team whose alias is called. Default: that of the run; control refuses any other.',
  }),
});

/** One strict object for all kinds, so that an unknown key is named with its path; `faultKeys` says what goes together. */
const fault = z.strictObject({
  at: timeSchema.optional().meta({ description: 'When the fault begins. Default: the start.' }),
  to: timeSchema.optional().meta({ description: 'When it ends. Default: never.' }),
  call: operation.optional().meta({ description: 'A call that fails, `<service>:<Operation>`. Default: none.' }),
  key: text
    .optional()
    .meta({ description: 'With `call`: a pattern, with `*`, of the keys that it concerns. Default: all.' }),
  nth: z.int().min(1).optional().meta({ description: 'With `call`: only the nth such call. Default: all.' }),
  error: text.optional().meta({ description: 'With `call`: the error code that is answered. Default: none.' }),
  answerLost: z
    .literal(true)
    .optional()
    .meta({ description: 'With `call`: it takes effect, and its answer is lost. Default: false.' }),
  takesSeconds: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'With `call`: seconds until the answer. Default: as fast as usual.' }),
  empty: z
    .literal(true)
    .optional()
    .meta({ description: 'With `call`: the service answers that there is nothing. Default: false.' }),
  job: job.optional().meta({ description: 'A job that something happens to, `<run>#<attempt>`. Default: none.' }),
  ends: z
    .enum(['Completed', 'Failed', 'Stopped'])
    .optional()
    .meta({ description: 'With `job`: the status that it ends with. Default: it does not end.' }),
  reason: z.string().max(1024).optional().meta({ description: 'With `ends`: the failure reason. Default: none.' }),
  secondaryStatus: text
    .optional()
    .meta({ description: 'With `ends: Stopped`: the secondary status. Default: Stopped.' }),
  status: z
    .literal('Interrupted')
    .optional()
    .meta({ description: 'With `job`: the service takes the instances away and gives others. Default: it does not.' }),
  minutes: minutes.optional().meta({
    description: 'With `status` and `events: late`: for how many minutes. Default: 10 with `status`, 5 with `events`.',
  }),
  hangs: z.literal(true).optional().meta({ description: 'With `job`: no more steps. Default: false.' }),
  silent: z.boolean().optional().meta({ description: 'With `hangs`: no more heartbeats either. Default: false.' }),
  loses: z
    .enum(['host', 'gpu', 'network', 'checkpoint'])
    .optional()
    .meta({ description: 'With `job`: what breaks. Default: nothing.' }),
  count: z.int().min(1).optional().meta({
    description: 'With `loses: checkpoint`: how many of the newest checkpoints cannot be loaded. Default: 1.',
  }),
  stopTakesMinutes: minutes
    .optional()
    .meta({ description: 'With `job`: minutes from StopTrainingJob to Stopped. Default: as usual.' }),
  beatsWithout: z
    .array(text)
    .min(1)
    .optional()
    .meta({ description: 'With `job`: fields that its heartbeats lack, as those of an older driver. Default: none.' }),
  describeLagSeconds: z
    .number()
    .nonnegative()
    .optional()
    .meta({ description: 'Seconds by which reads of SageMaker lag behind writes. Default: 0.' }),
  indexLagSeconds: z
    .number()
    .nonnegative()
    .optional()
    .meta({ description: 'Seconds by which the indexes of the run table lag behind it. Default: 0.' }),
  kill: z
    .enum(['control', 'reconcile'])
    .optional()
    .meta({ description: 'A function that dies in the middle of its work. Default: none.' }),
  afterEffect: count.optional().meta({ description: 'With `kill`: at the call after this many writes. Default: 1.' }),
  times: z.int().min(1).optional().meta({ description: 'With `kill`: how many times. Default: 1.' }),
  deleteJob: job.optional().meta({ description: 'A job that somebody deletes, `<run>#<attempt>`. Default: none.' }),
  stored: runId
    .optional()
    .meta({ description: 'A run that the table holds as an older version wrote it. Default: none.' }),
  without: z
    .array(text)
    .min(1)
    .optional()
    .meta({ description: 'With `stored`: the fields that the older version did not have. Default: none.' }),
  clock: shiftSchema.optional().meta({
    description: 'How far the clock of the functions is ahead of that of the services; negative: behind. Default: 0s.',
  }),
  taken: job
    .optional()
    .meta({ description: 'A job name that somebody else has taken, `<run>#<attempt>`. Default: none.' }),
  events: z
    .enum(['lost', 'late'])
    .optional()
    .meta({ description: 'State changes on the bus are lost, or come late and twice. Default: they come.' }),
});

const random = z.strictObject({
  runs: count.max(1000).optional().meta({ description: 'Number of runs that are drawn from the seed. Default: 0.' }),
  teams: z
    .int()
    .min(1)
    .optional()
    .meta({ description: 'Number of teams that launch them. Default: all of the environment.' }),
  faultsPerDay: z
    .number()
    .nonnegative()
    .max(10_000)
    .optional()
    .meta({ description: 'Faults a day that are drawn from the seed. Default: 0.' }),
});

/** The scenario file. */
export const scenarioSchema = z.strictObject({
  schema: z.literal(1).meta({ description: 'Version of the file format.' }),
  environment: fileOrContent.meta({
    description: 'The environment file: a path relative to the scenario, or its content.',
  }),
  region: text.optional().meta({ description: 'Region, where the environment has several. Default: the only one.' }),
  limits: z.record(z.string(), limit).optional().meta({
    description: 'Quotas by name or code: a number, or a list of `{from, value}`. Default: those of a new account.',
  }),
  capacity: z
    .array(capacity)
    .optional()
    .meta({ description: 'Instances that the service can give. Default: unlimited.' }),
  spotShare: z.number().positive().max(1).optional().meta({
    description:
      "What spot instances are billed at, as a share of the on-demand price. Default: that of the catalog's prices.",
  }),
  outside: z.array(outside).optional().meta({ description: 'Jobs of others in the account. Default: none.' }),
  runs: z.array(run).optional().meta({ description: 'Runs that are launched. Default: none.' }),
  calls: z.array(call).optional().meta({ description: 'What people do. Default: nothing.' }),
  faults: z.array(fault).optional().meta({ description: 'What breaks. Default: nothing.' }),
  rates: z.record(z.string(), z.number().positive()).optional().meta({
    description:
      'Calls a second of one operation that the service answers, by `<service>:<Operation>`. Default: the published limits.',
  }),
  until: timeSchema.optional().meta({ description: 'When the simulation ends. Default: 720h.' }),
  random: random
    .optional()
    .meta({ description: 'Runs, stops, resumes and faults that are drawn from the seed. Default: none.' }),
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
