import { z } from 'zod';
import { MAX_STEP, MAX_TIME } from '../config/formats/numbers';
import { hasEnded, RUN_STATES } from '../contracts/control-requests';

export type { RunState } from '../contracts/control-requests';

export type EpochMs = number;

/** Read-only at every depth. */
type Frozen<T> = T extends (infer U)[]
  ? readonly Frozen<U>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

// Documents of the run table are checked by these schemas when they are read: a restore or an edit by hand may have left anything in them.
const time = z.number().min(0).max(MAX_TIME);
const count = z.number().min(0).max(1e9);
const amount = z.number().min(-1e12).max(1e12).nullable();
const step = z.number().min(0).max(MAX_STEP).nullable();
const text = z.string();
const cluster = z.object({ instanceType: text, instanceCount: count });

const pauses = z.object({
  /** Total length of the finished pauses, milliseconds. */
  ms: z.number(),
  /** Start of the pause that is still going on. */
  since: time.optional(),
  /** Number of pauses, including the current one. @default - none */
  times: count.optional(),
});
/** Periods in which a job that had had its instances was without them: it neither trains nor is billed. */
export type Pauses = Frozen<z.infer<typeof pauses>>;

const presentJob = z.object({
  kind: z.literal('present'),
  arn: text,
  /** InProgress, Stopping, Completed, Failed, Stopped, Deleting. */
  status: text,
  secondaryStatus: text,
  failureReason: text,
  /** According to the service's clock. */
  createdAt: time,
  trainingStartedAt: time.optional(),
  /** Start of its most recent Training status; later than `trainingStartedAt` after an interruption. */
  trainingSince: time.optional(),
  /** Periods without instances after the job had had them. */
  pauses: pauses.optional(),
  /** Which of the preferred instance types the service chose. */
  selected: cluster.optional(),
  endedAt: time.optional(),
  /** Per instance; for spot, the time that remains after the discount. */
  billableSeconds: z.number().optional(),
  /** The service keeps the instances after the job; `retainedSeconds` is set once it no longer keeps them. */
  warmPool: z.object({ isKept: z.boolean(), retainedSeconds: z.number() }).optional(),
  /** Last value of the metric `slipway:step`. */
  lastStep: z.number().optional(),
  /** Whether the job belongs to this run and attempt. `unread`: neither the job itself nor its tags show it. */
  identity: z.enum(['ours', 'foreign', 'unread']),
});
/** A job as returned by DescribeTrainingJob; times in epoch milliseconds. */
export type PresentJob = Frozen<z.infer<typeof presentJob>>;

const startTimes = z.object({
  number: count,
  firstStep: step,
  firstStepAt: time.nullable(),
  step,
  stepAt: time.nullable(),
  /** Null while its ranks are running. */
  endedAt: time.nullable(),
  /** Seconds before the first step by phase. @default - from a driver that does not count them */
  phases: z.record(text, z.number()).optional(),
});
/**
 * One start of an attempt's ranks, with the times that the driver measured. Start 0 begins with the job; each in-place restart is the next
 * one.
 */
export type StartTimes = Frozen<z.infer<typeof startTimes>>;

/** Why an attempt failed, grouped by the reaction that it needs. */
const FAILURE_CLASSES = [
  'capacity',
  'platform',
  'deleted',
  'hang',
  'planned',
  'checkpoint',
  'data',
  'loss',
  'efa',
  'retry',
  'user-code',
  'memory',
  'config',
  'access',
  'collision',
  'outside-stop',
] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

const capacityOption = z.object({
  /** `as-written` or `on-demand`, for example. */
  id: text,
  /** Instances of the whole job, including its spare hosts. */
  instances: z.array(cluster).min(1),
  usage: z.enum(['training', 'spot', 'training-plan', 'processing']),
  /**
   * Price of the whole cluster, from the price list or negotiated; null = not known. For spot this is the on-demand price: the service
   * discounts spot by billing less time.
   */
  usdPerHour: amount,
  /** Spot only: expected cost of an hour before the service reports billed time. @default `usdPerHour` times SPOT_SHARE */
  expectedUsdPerHour: amount.optional(),
  /** Clusters that the service may choose instead, with their own prices. @default none */
  alternatives: z.array(cluster.extend({ usdPerHour: amount })).optional(),
});
/** One way to request capacity. Capacity option 0 is the run file as written. */
export type CapacityOption = Frozen<z.infer<typeof capacityOption>>;

const runPolicy = z.object({
  maxAttempts: count,
  maxRuntimeSeconds: count,
  /** The smaller of `limits.maxCostUsd` and the guardrail of the environment; null = no cap. */
  maxCostUsd: amount,
  /** The option that sets the cap. @default `limits.maxCostUsd` */
  costCapFrom: z.literal('guardrails.maxCostPerRunUsd').optional(),
  /** How long the run may wait for capacity in one go before a person is notified. */
  capacityBudgetSeconds: count,
  startupMinutes: count,
  silenceMinutes: count,
  /** Steps can be observed: the built-in trainer, or `progress.stepRegex`. Without it the hang rules only alert and never stop the run. */
  seesSteps: z.boolean(),
  /** Committed checkpoints can be observed from outside. Without it the no-progress rule only alerts and never stops the run. */
  seesCommits: z.boolean(),
  /** The run file configures checkpoints, whether or not they can be observed from outside. */
  keepsCheckpoints: z.boolean(),
  /** The driver writes heartbeats: not with the toolkit contract or network isolation. */
  writesHeartbeats: z.boolean(),
  checkpointIntervalSeconds: count,
  capacityOptions: z.array(capacityOption).min(1),
  /** How long the service keeps the instances after a job has ended. */
  keepAliveSeconds: count,
  /** How many of the instances of each capacity option are spare hosts. */
  spareInstances: count,
  /** The reaction to exit code 73, a loss outside its bounds. */
  lossPolicy: z.enum(['stop', 'rollback']),
  /** Total number of steps, if the run file states it. */
  totalSteps: count.optional(),
  /** Elastic runs: how long a job may be pending before the service stops it. @default `capacityBudgetSeconds` */
  pendingSeconds: count.optional(),
  /** The queue may ask its job to save and exit in favour of another run. */
  preemptible: z.boolean(),
});
/** Settings of the run file that stay fixed for the whole run. */
export type RunPolicy = Frozen<z.infer<typeof runPolicy>>;

const checkpoint = z.object({
  uri: text,
  step: z.number().min(0).max(MAX_STEP),
  /**
   * The attempt that wrote it; null when it is not known (marker of a custom script). A later attempt may write to the same prefix again.
   */
  attempt: z.number().nullable(),
  /** When the marker of a custom script was written. @default - not known */
  writtenAt: time.optional(),
});
/** A complete checkpoint: its step, and its location. */
export type Checkpoint = Frozen<z.infer<typeof checkpoint>>;

/** A key that distinguishes two checkpoints written to the same URI by different attempts. */
export const checkpointKey = ({ uri, attempt, writtenAt }: Checkpoint): string =>
  `${uri}@${attempt ?? writtenAt ?? ''}`;

const handOver = z.object({
  /** `preempted`: in favour of another run; `resized`: to continue with more instances. */
  why: z.enum(['preempted', 'resized']),
  at: time,
  /** When the request was last written to where the driver polls for it; undefined = not yet. */
  sentAt: time.optional(),
  text,
});
/** A request of the control plane that the attempt saves and exits early. */
export type HandOver = Frozen<z.infer<typeof handOver>>;

const attemptStop = z.object({
  why: z.enum(['user', 'hang', 'spend', 'hand-over']),
  at: time,
  /** When StopTrainingJob was last sent; undefined = not yet. */
  sentAt: time.optional(),
  /** When the service accepted it while the job could not be described. */
  acceptedAt: time.optional(),
  /** The service refused it because the job was over already. @default false */
  isTooLate: z.boolean().optional(),
  text,
});
export type AttemptStop = Frozen<z.infer<typeof attemptStop>>;

const gpuReport = z.object({
  host: text,
  /** `gpu`: these GPUs are broken; `host`: the host is broken or slow, and these are its GPUs; `passed`: they have passed the full check. */
  kind: z.enum(['gpu', 'host', 'passed']),
  /** UUIDs. */
  gpus: z.array(text),
  reason: text,
});
/** What a job has found out about the hardware of one of its hosts. */
export type GpuReport = Frozen<z.infer<typeof gpuReport>>;

const vitals = z.object({
  /** The first step that the driver of this attempt saw; absent in heartbeats of older drivers. */
  firstStep: z.number().nullable().optional(),
  loss: z.number().nullable(),
  /** The trainer's own text about a loss outside its bounds. */
  lossAlert: text.nullable(),
  /** `host`: empty if the network is slow and no single host is the cause. */
  slowHost: z.object({ host: text, what: text, ratio: z.number() }).nullable(),
  stepsPerHour: amount,
  /** Median of the preceding hour. */
  usualStepsPerHour: amount,
  /** In-place restarts of this attempt. */
  restarts: count,
  /** The driver has passed on a request to save and exit. @default false */
  handOver: z.boolean().optional(),
  /** Hosts that a spare host replaced in this attempt. */
  setAside: z.array(z.object({ host: text, reason: text })).optional(),
  /** Hosts that were found broken or slow. */
  evidence: z.array(gpuReport).optional(),
  /** Number of spare hosts that are still available. @default null */
  sparesLeft: z.number().nullable().optional(),
  /** Mean utilisation of the GPUs over all hosts and samples of the attempt; absent when no host reports it. */
  gpuUtilizationPercent: z.number().optional(),
  /** Why a program that ended with exit code 0 may not have done what it was asked for; absent when nothing suggests that. */
  endedEarly: text.optional(),
});
/** Training metrics from the heartbeat; null = not known. */
export type Vitals = Frozen<z.infer<typeof vitals>>;

const progress = z.object({
  step,
  phase: text,
  /** When the heartbeat object was last written, S3's clock. */
  heartbeatAt: time,
  /** When step or phase last changed, by our clock. */
  movedAt: time,
  /** When the first driver of the attempt began, by S3's clock; absent with older drivers. */
  beganAt: time.optional(),
  /** Absent with older drivers. */
  vitals: vitals.optional(),
  /** Every start of the attempt's ranks that a heartbeat has reported; absent with older drivers. */
  starts: z.array(startTimes).optional(),
  /** How many of them belong to earlier driver processes of this attempt. @default 0 */
  earlierStarts: count.optional(),
});
/** The last sign of progress, by the clock of S3 (`heartbeatAt`) and by ours (`movedAt`). */
export type Progress = Frozen<z.infer<typeof progress>>;

const jobFiles = z.object({
  /** URI of the object that its driver writes every minute. */
  heartbeat: text,
  /** Prefix of its checkpoints, and the marker of a custom script's; undefined when commits cannot be observed. */
  checkpoints: z.object({ prefix: text, marker: text.optional() }).optional(),
});
/** Where the job of an attempt writes: the control plane reads its heartbeat and checkpoints there. */
export type JobFiles = Frozen<z.infer<typeof jobFiles>>;

export const MAX_ATTEMPT = 9999;

export const attempt = z.object({
  number: z.int().min(1).max(MAX_ATTEMPT),
  jobName: text,
  /** `intent`: the name is fixed, and it is not yet known whether the job exists. `created`: the job is ours. `ended`: the job is over. */
  phase: z.enum(['intent', 'created', 'ended']),
  capacityOptionId: text,
  resumeFrom: checkpoint.nullable(),
  intentAt: time,
  createTries: count,
  lastCreateAt: time.optional(),
  /**
   * How many of the create calls certainly made no job: when none of them did, another capacity option may be tried under the same name.
   * @default 0
   */
  unmadeTries: count.optional(),
  jobArn: text.optional(),
  /** CreationTime of the job by the service's clock: a job that reuses the name has another one. */
  jobCreatedAt: time.optional(),
  acceptedAt: time.optional(),
  /** From the descriptor that the create call was made with, or read later. */
  files: jobFiles.optional(),
  status: text,
  secondaryStatus: text,
  trainingStartedAt: time.optional(),
  /** When training last started on the instances: after an interruption the driver starts again. */
  trainingSince: time.optional(),
  /** Periods without instances after the job had had them. */
  pauses: pauses.optional(),
  /** The alternative that the service chose; undefined = the cluster of the capacity option, or not known yet. */
  selected: cluster.optional(),
  /** Newest usable committed step when the attempt began; null = none. */
  committedAtStart: step,
  progress: progress.optional(),
  firstStep: step,
  lastStep: step,
  /** When the service last reported the job as alive although its heartbeat was late or could never be read; undefined = neither. */
  aliveAt: time.optional(),
  /** Since when the heartbeat could not be read; undefined = it could be read, or did not exist. */
  unreadSince: time.optional(),
  /** Since when the checkpoints could not be listed while the job was live; undefined = the last listing succeeded. */
  unlistedSince: time.optional(),
  /** When the hang rule first matched; a stop requires a second observation, later by our own clock. */
  suspectedHangAt: time.optional(),
  /**
   * Time of the last heartbeat, when it was read so long after it that the next ones are missing, while Describe fails or does not find the
   * job; undefined = none is missing, or that is not known.
   */
  silentHeartbeat: time.optional(),
  /** Since when Describe fails, so that the state of the job is unknown; undefined = it answers. */
  undescribedSince: time.optional(),
  /** When Describe first did not find a job that it had found before: a single wrong answer must not start a second job. */
  absentSince: time.optional(),
  /** The job as it was first seen over, while its end cannot be judged because its checkpoints cannot be listed. */
  over: presentJob.optional(),
  stop: attemptStop.optional(),
  handOver: handOver.optional(),
  endedAt: time.optional(),
  failureClass: z.enum([...FAILURE_CLASSES, 'completed', 'stopped']).optional(),
  reason: text,
  costUsd: amount,
});
/** One SageMaker job of a run, as last observed. */
export type Attempt = Frozen<z.infer<typeof attempt>>;

const budgets = z.object({
  /** Attempts that failed without committing anything new; limited by `limits.maxAttempts`. */
  failures: count,
  /** Consecutive failed attempts without a newer committed step, with a cause that is likely to repeat. */
  stale: count,
  /** The same for failures of the service or the storage. */
  stalePlatform: count,
  /** Number of failures of the whole run by class. */
  byClass: z.record(text, count),
  capacitySince: time.optional(),
  capacityTries: count,
});
/** Counters against the limits of lib/core/lifecycle/budgets.ts. */
export type Budgets = Frozen<z.infer<typeof budgets>>;

const notice = z.object({
  id: text,
  alert: text,
  text,
  /** Section of docs/runbooks.md. */
  runbook: text,
  at: time,
});
/** A notification that is sent once. */
export type Notice = Frozen<z.infer<typeof notice>>;

const poolAttempt = attempt.pick({ number: true, jobName: true });
/** What is needed to ask the service about the job of an attempt. */
export type PoolAttempt = Frozen<z.infer<typeof poolAttempt>>;

const warmPool = z.object({
  /** The attempt that left it. */
  attempt: poolAttempt,
  /** null = the price is not known. */
  usdPerHour: amount,
  since: time,
  /** When they are released, unless another job takes them over first. */
  until: time,
  /** The service has reported how long they were kept. @default - the service is asked after `until` */
  isFinal: z.boolean().optional(),
});
/** Instances that the service keeps after a job. */
export type WarmPool = Frozen<z.infer<typeof warmPool>>;

const earlierPool = warmPool.extend({ bookedUntil: time });
/** A pool whose cost is booked up to `bookedUntil`, until the service reports how long it was kept. */
export type EarlierPool = Frozen<z.infer<typeof earlierPool>>;

export const runRecord = z.object({
  runId: text,
  name: text,
  team: text,
  environment: text,
  kind: z.enum(['training', 'processing']),
  configHash: text,
  version: z.int().min(1),
  createdAt: time,
  state: z.enum(RUN_STATES),
  desired: z.enum(['run', 'stop']),
  reason: text,
  /** The caller has confirmed its uploads. */
  confirmed: z.boolean(),
  /** The queue has admitted it. */
  admitted: z.boolean(),
  /** When the queue last admitted it: a run is admitted again after it was preempted, resumed, or sent back because a quota was used up. */
  admittedAt: time.optional(),
  /** Number of attempts that it had had by then. */
  attemptsAtAdmission: count.optional(),
  priority: z.number(),
  after: z.array(text),
  policy: runPolicy,
  /** Tags of the run. @default - none */
  tags: z.record(text, text).optional(),
  /** A note that a person wrote about the run. */
  note: text.optional(),
  budgets,
  attempt: attempt.optional(),
  capacityOptionId: text,
  notBefore: time.optional(),
  committed: checkpoint.nullable(),
  /** Keys of committed checkpoints that could not be read; the run never resumes from them again. */
  badCheckpoints: z.array(text),
  /** Windows of the data that rollbacks have skipped. */
  skips: z.array(z.object({ step: z.number(), batches: z.number() })).optional(),
  /** The newest rollback; every later attempt carries it. */
  rollback: z.object({ toStep: z.number(), beforeAttempt: z.number() }).optional(),
  /** Cost of the ended attempts; null once a price was not known. */
  spentUsd: amount,
  /** Share of the on-demand price that was billed for ended spot attempts. @default - expected from the catalog's spot price */
  spotShare: z.number().optional(),
  /** The warm pool that the last attempt left: it is billed until the next attempt takes it over or it expires. */
  warmPool: warmPool.optional(),
  /** The warm pool that a finished run left; `spentUsd` already includes its cost. */
  leftPool: warmPool.optional(),
  /** When a person had the run's files deleted; undefined = they are kept. */
  filesDeletedAt: time.optional(),
  /**
   * Warm pools of earlier attempts, booked up to the start of the next job: that job may have got another pool of the account instead.
   * @default - none
   */
  earlierPools: z.array(earlierPool).optional(),
  /** Request id of the start by a person. @default - none: a registered run; its record never expires */
  requestId: text.optional(),
  /** When it last joined the queue; a preempted run keeps this time. Until its uploads are confirmed, when it was created. */
  queuedAt: time,
  /** Capacity that the queue reserves for its next attempt: a larger capacity option, and since when. @default - none */
  reservation: z.object({ capacityOptionId: text, since: time }).optional(),
  /** When an elastic run last failed to get capacity for a size. @default - never */
  sizeFailedAt: time.optional(),
  /** When it last went back to the queue because another run may use its capacity. @default - never */
  preemptedAt: time.optional(),
  endedAt: time.optional(),
  /** When attempts of the last day failed, oldest first. @default - none */
  restarts: z.array(time).optional(),
  /** Active alerts, so that each is raised only once. */
  alerts: z.array(text),
  /** Notices that are not published yet. */
  outbox: z.array(notice),
});
/**
 * The item of a run in the run table. Pure data, which is never changed in place: readers share it, and every write replaces the item, with a
 * condition on `version`. All times are epoch milliseconds by our own clock unless the comment names another clock.
 */
export type RunRecord = Frozen<z.infer<typeof runRecord>>;

export const isOver: (record: Pick<RunRecord, 'state'>) => boolean = hasEnded;

/** Whether the run still has to wait for its start time or a backoff. */
export const isWaiting = ({ notBefore }: Pick<RunRecord, 'notBefore'>, now: EpochMs): boolean =>
  notBefore !== undefined && notBefore > now;

export const freshBudgets = (): Budgets => ({
  failures: 0,
  stale: 0,
  stalePlatform: 0,
  byClass: {},
  capacityTries: 0,
});

/** The attempt whose job may exist; undefined between attempts. */
export function liveAttempt(record: RunRecord): Attempt | undefined {
  return record.attempt && record.attempt.phase !== 'ended' ? record.attempt : undefined;
}
