import { z } from 'zod';
import { field } from '../config/formats/field';
import { RUN_STATES } from './control-requests';
import { lineageSchema } from './lineage';

/**
 * JSON Schemas of the `--json` output. schema/answers.schema.json and the types of the Python client are generated from them, and tests
 * validate actual output against them. Documents may gain members later; existing members are not removed.
 */
const text = z.string();
const number = z.number();
const whole = z.int();
const orNull = <T extends z.ZodType>(type: T) => z.union([type, z.null()]);
const time = field(text, 'ISO 8601, UTC');

/** A document that is printed with `--json`. */
export type Printed<Name extends keyof typeof ANSWERS> = z.output<(typeof ANSWERS)[Name]>;

const issue = z.object({
  rule: field(text, 'id of the rule; docs/rules has a page for each'),
  level: z.enum(['error', 'warning', 'info']),
  path: field(text, "path of the option in the run file; '' for the whole file"),
  message: text,
});

const quota = z.object({
  code: text,
  name: text,
  needed: number,
  limit: orNull(number),
  inUse: orNull(number),
  verdict: z.enum(['enough', 'short', 'unknown']),
});

/** One quota that a run needs, in the quota's unit; `limit` and `inUse` are null when they could not be read. */
export type QuotaAnswer = z.output<typeof quota>;

/** One SageMaker job of a run. Steps count from 1; older launchers do not set the optional members. */
export type AttemptAnswer = z.output<typeof attempt>;
const attempt = z.object({
  number: field(whole.optional(), 'counted from 1; earlier attempts may have expired'),
  trainingJobName: text,
  status: text,
  secondaryStatus: text,
  firstStep: orNull(whole),
  lastStep: orNull(whole),
  reason: text,
  startedAt: orNull(time),
  endedAt: orNull(time),
  instanceCount: whole.optional(),
  gpuHours: field(number.optional(), 'GPU hours allocated to the attempt; 0 without GPUs'),
  gpuUtilizationPercent: field(number.optional(), 'mean over its hosts; absent when no host reports it'),
});

const runState = z.enum(RUN_STATES);

const timelineLine = z.object({ at: time, what: text, text, evidence: z.record(text, z.unknown()) });

/** One timeline entry of a run: time, description and the underlying values. */
export type TimelineAnswer = z.output<typeof timelineLine>;

// Older launchers do not set all of the optional members.
const status = z.object({
  runId: text,
  name: text,
  team: text,
  state: runState,
  desiredState: z.enum(['run', 'stop']),
  reason: text,
  createdAt: field(time.optional(), 'when it was launched'),
  attempt: field(orNull(whole).optional(), 'number of the newest attempt'),
  /** All attempts in `status`; only the newest in `list`. */
  attempts: z.array(attempt),
  committedStep: field(orNull(whole), 'step of the newest committed checkpoint'),
  step: orNull(whole),
  /** When the driver recorded that step, by the host's clock. */
  stepAt: orNull(time).optional(),
  loss: orNull(number),
  goodput: field(orNull(number), 'share of the run time spent in steps that were kept; null in list'),
  progressPercent: field(orNull(number).optional(), '0 to 100; null when the run file specifies no end'),
  etaAt: field(orNull(time).optional(), 'based on the speed and failures of the run'),
  /** 80 % interval of the end time. */
  etaInterval80: orNull(z.tuple([time, time])).optional(),
  interruptions: field(
    whole.optional(),
    'number of interruptions, from which the expected end and its interval are computed',
  ),
  spendUsd: orNull(number),
  /** `left` is null until a job reports it. */
  spareInstances: z.object({ left: orNull(whole), of: whole }).optional(),
  queuePosition: orNull(whole),
  /** Request to the live job to save and exit; `isRead` is true once its driver has confirmed it. */
  handOver: z.object({ why: z.enum(['preempted', 'resized']), at: time, isRead: z.boolean() }).optional(),
  tags: z.record(text, text).optional(),
  note: text.optional(),
  after: field(z.array(text).optional(), 'runs that must be completed before it starts'),
  /** Whether another run may preempt it. */
  preemptible: z.boolean().optional(),
  configuration: z
    .object({
      spec: z.record(text, z.unknown()),
      /** Digest of the run file; not in answers of 0.2.0. */
      configHash: text.optional(),
      /** Digest of the code archive; null for built-in code. */
      codeSha256: orNull(text),
      /** Hash of driver and built-in trainer. */
      driverHash: text,
      /** The environment's image at the time of the launch. */
      trainingImageUri: orNull(text),
    })
    .optional(),
  timeline: z.array(timelineLine).optional(),
  /** Number of oldest timeline lines that did not fit into the answer. @default 0 */
  timelineOmitted: whole.optional(),
});

const plan = z.looseObject({
  fits: z.enum(['fits', 'tight', 'oom']),
  memoryGiB: z.looseObject({ total: number, available: number }),
  stepSeconds: number,
  tokensPerSecond: number,
  tokensPerSecondPerGpu: number,
  modelTflopsPerGpu: number,
  hardwareTflopsPerGpu: number,
  mfu: number,
  parameters: number,
  activeParameters: number.optional(),
  steps: orNull(whole),
  tokens: orNull(number),
  hours: field(orNull(number), 'training time without failures'),
  wallHours: field(orNull(number), 'including saves, failures and restarts'),
  usd: z.looseObject({ onDemand: orNull(number) }),
  goodput: number,
  gpus: whole,
});

const neuronPlan = z.looseObject({
  fits: field(z.enum(['oom', 'unknown']), 'oom: the state exceeds the memory of all NeuronCores'),
  instanceType: text,
  cores: field(whole, 'NeuronCores as reported by the runtime, over all instances'),
  coreGiB: field(number, 'device memory of one core, including what the runtime reserves'),
  layouts: z.array(z.looseObject({ tensor: whole, shard: whole, memoryGiB: z.looseObject({ total: number }) })),
  parameters: number,
  activeParameters: number,
  tokensPerSecond: z.null(),
  usd: z.null(),
  assumptions: z.array(text),
});

const compared = z.object({
  label: field(text, 'label that distinguishes it from the other runs'),
  runId: text,
  state: text,
  step: orNull(whole),
  loss: field(orNull(number), 'loss after the last step'),
  tokensPerSecondPerGpu: field(orNull(number), 'median over all steps'),
  goodput: orNull(number),
  spendUsd: orNull(number),
});

const versions = z.object({ isSame: z.boolean(), values: z.tuple([orNull(text), orNull(text)]) });

const teamRun = z.object({
  runId: text,
  name: text,
  state: runState,
  reason: text,
  queuePosition: orNull(whole),
  instances: field(orNull(whole), 'instances of the newest attempt'),
  step: orNull(whole),
  progressPercent: orNull(number),
  etaAt: orNull(time),
  endedAt: field(orNull(time), 'end of its newest attempt; null while that is live'),
  goodput: orNull(number),
  spentUsd: field(number, 'cost of its attempts in the month, from the ledger'),
  gpuHours: field(orNull(number), 'GPU hours of its attempts in the month; null = not reported by an older launcher'),
  gpuUtilizationPercent: field(orNull(number), 'mean over these hours, for runs that report it'),
});

const gpuUse = z.object({
  utilizationPercent: field(orNull(number), 'mean over the GPUs of the host; null when not reported'),
  memoryGiB: field(number, 'memory in use on the GPU with the highest usage'),
  totalGiB: number,
});

/** JSON documents by name; `event`, `logLine` and `gpuLine` are printed as one line each. */
export const ANSWERS = {
  issue,
  validation: z.object({ ok: z.boolean(), issues: z.array(issue.extend({ file: text.optional() })) }),
  refusal: z.object({ ok: z.literal(false), issues: z.array(issue), quota: z.array(quota).optional() }),
  plan,
  neuronPlan,
  offers: z.object({
    by: time,
    offers: z.array(
      z.object({
        kind: z.enum(['on-demand', 'spot', 'training-plan-on-offer', 'own-training-plan']),
        id: field(text.optional(), 'id of the offering, or ARN of the plan'),
        startAt: time,
        startInterval80: z.tuple([time, time]),
        endAt: field(orNull(time), 'null when the reserved time is too short'),
        endInterval80: orNull(z.tuple([time, time])),
        usd: field(orNull(number), 'including failures and restarts; null = price unknown'),
        usdInterval80: orNull(z.tuple([number, number])),
        chance: field(number, 'probability that the run ends by the date, 0 to 1'),
        makesDate: field(z.boolean(), 'true if the probability is at least 0.9'),
        latestStartAt: field(orNull(time), 'latest launch time with a probability of at least 0.9'),
        basis: text,
        note: text,
      }),
    ),
    notes: z.array(text),
  }),
  launched: z.object({
    runId: text,
    state: runState,
    queuePosition: orNull(whole),
    trainingJobName: orNull(text),
    trainingJobArn: orNull(text),
  }),
  status,
  runList: z.object({ runs: z.array(status) }),
  changed: z.object({ runId: text, desiredState: z.enum(['run', 'stop']), state: runState.optional() }),
  noted: z.object({ runId: text, note: text }),
  comparison: z.object({ runs: z.array(compared) }),
  matrix: z.object({
    matrix: field(text, 'value of the tag `matrix` on its runs'),
    runs: z.array(
      z.union([
        compared.extend({
          stoppedEarly: field(z.boolean().optional(), 'true if stopped by --stop-when; otherwise absent'),
        }),
        z.object({
          label: text,
          set: field(z.array(text), 'values for --set'),
          runId: text,
          state: runState,
          queuePosition: orNull(whole),
        }),
      ]),
    ),
  }),
  diff: z.object({
    runs: z.tuple([compared, compared]),
    options: z.array(
      z.object({
        path: text,
        values: field(z.array(z.unknown()), 'values of both runs; null or absent = not set'),
      }),
    ),
    code: versions,
    driver: versions,
    image: versions,
    lossAtSteps: z.array(z.object({ step: whole, loss: z.tuple([number, number]) })),
  }),
  lineage: lineageSchema,
  published: z.object({
    runId: text,
    uri: field(text, 'prefix of the weights'),
    files: z.array(z.object({ name: text, bytes: whole })),
    card: field(text, 'URI of the model card'),
    modelPackageArn: field(orNull(text), 'model package version in the registry; null without --registry'),
  }),
  event: timelineLine.extend({ runId: text }),
  logLine: z.object({ at: time, attempt: whole, host: text, message: text }),
  gpuLine: z.object({ attempt: whole, at: time, gpus: field(z.record(text, gpuUse), 'by host') }),
  teamReport: z.object({
    environment: text,
    region: text,
    month: field(text, 'for example 2026-11, UTC'),
    readAt: time,
    teams: z.array(
      z.object({
        team: text,
        spentUsd: number,
        budgetUsd: field(orNull(number), 'null = the team has no budget'),
        goodput: field(orNull(number), 'mean over the runs of the month, weighted by cost'),
        gpuHours: field(orNull(number), 'GPU hours of its runs in the month; null = not known'),
        gpuUtilizationPercent: field(orNull(number), 'mean over these hours, for runs that report it'),
        runs: field(z.array(teamRun), 'runs of the month and all runs that have not ended; newest first'),
      }),
    ),
    notes: z.array(text),
  }),
  imported: z.object({
    runFile: field(text, 'YAML'),
    notCarried: z.array(z.object({ field: text, value: z.unknown(), why: text })),
    issues: z.array(issue),
    verdicts: z.record(text, z.unknown()).optional(),
  }),
} as const;

/** One JSON Schema with a definition for each document. */
export const answersSchema = (): object => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Output of slipway with --json',
  $defs: Object.fromEntries(
    Object.entries(ANSWERS).map(([name, schema]) => {
      const { $schema: _, ...definition } = z.toJSONSchema(schema);
      return [name, definition];
    }),
  ),
});
