import type { Rollback, Skip } from '../config/job-file';
import type { EpochMs, Pauses, PresentJob } from './present-job';

/**
 * The item of one run in the run table. Pure data; every write replaces the item, with a condition on `version`. All times are epoch
 * milliseconds by our own clock unless the comment names another clock.
 */
export type { EpochMs } from './present-job';

/**
 * One start of an attempt's ranks, with the times that the driver measured. Start 0 begins with the job; each in-place restart is the next
 * one.
 */
export interface StartTimes {
  number: number;
  firstStep: number | null;
  firstStepAt: EpochMs | null;
  step: number | null;
  stepAt: EpochMs | null;
  /** Null while its ranks are running. */
  endedAt: EpochMs | null;
}

/** State of a run as stored in the table. */
export type RunState =
  | 'queued'
  | 'submitting'
  | 'pending'
  | 'running'
  | 'stopping'
  | 'resuming'
  | 'completed'
  | 'failed'
  | 'stopped';

/** States in which a run needs no further work. */
export const OVER: readonly RunState[] = ['completed', 'failed', 'stopped'];

/** Why an attempt failed, grouped by the reaction that it needs. */
export type FailureClass =
  | 'capacity'
  | 'platform'
  | 'deleted'
  | 'hang'
  | 'planned'
  | 'checkpoint'
  | 'data'
  | 'loss'
  | 'efa'
  | 'retry'
  | 'user-code'
  | 'memory'
  | 'config'
  | 'access'
  | 'collision'
  | 'outside-stop';

/** One way to request capacity. Rung 0 is the run file as written. */
export interface Rung {
  /** `as-written` or `on-demand`, for example. */
  id: string;
  /** Instances of the whole job, including its spare hosts. */
  instances: { instanceType: string; instanceCount: number }[];
  usage: 'training' | 'spot' | 'training-plan' | 'processing';
  /**
   * Price of the whole cluster, from the price list or negotiated; null = not known. For spot this is the on-demand price: the service
   * discounts spot by billing less time.
   */
  usdPerHour: number | null;
  /** Spot only: expected cost of an hour before the service reports billed time. @default `usdPerHour` times SPOT_SHARE */
  expectedUsdPerHour?: number | null;
  /** Clusters that the service may choose instead, with their own prices. @default none */
  alternatives?: { instanceType: string; instanceCount: number; usdPerHour: number | null }[];
}

/** Settings of the run file that stay fixed for the whole run. */
export interface RunPolicy {
  maxAttempts: number;
  maxRuntimeSeconds: number;
  /** The smaller of `limits.maxCostUsd` and the guardrail of the environment; null = no cap. */
  maxCostUsd: number | null;
  /** The option that sets the cap. @default `limits.maxCostUsd` */
  costCapFrom?: 'guardrails.maxCostPerRunUsd';
  /** How long the run may wait for capacity in one go before a person is notified. */
  capacityBudgetSeconds: number;
  startupMinutes: number;
  silenceMinutes: number;
  /** Steps can be observed: the built-in trainer, or `progress.stepRegex`. Without it the hang rules only alert and never stop the run. */
  seesSteps: boolean;
  /** Committed checkpoints can be observed from outside. Without it the no-progress rule only alerts and never stops the run. */
  seesCommits: boolean;
  /** The run file configures checkpoints, whether or not they can be observed from outside. @default true (records of older versions) */
  keepsCheckpoints?: boolean;
  /** The driver writes heartbeats: not with the toolkit contract or network isolation. @default `seesSteps` (records of older versions) */
  beats?: boolean;
  checkpointIntervalSeconds: number;
  ladder: Rung[];
  /** How long the service keeps the instances after a job has ended. @default 0 */
  keepAliveSeconds?: number;
  /** How many of the instances of each rung are spare hosts. @default 0 */
  spareInstances?: number;
  /** The reaction to exit code 73, a loss outside its bounds. @default stop (records of older versions have no value) */
  lossPolicy?: 'stop' | 'rollback';
  /** Total number of steps, if the run file states it. */
  totalSteps?: number;
  /** Elastic runs: how long a job may be pending before the service stops it. @default `capacityBudgetSeconds` */
  pendingSeconds?: number;
  /** The queue may ask its job to save and exit in favour of another run. @default false */
  preemptible?: boolean;
}

/** A complete checkpoint: its step, and its location. */
export interface Checkpoint {
  uri: string;
  step: number;
  /**
   * The attempt that wrote it; null when it is not known (marker of a custom script). A later attempt may write to the same prefix again.
   */
  attempt: number | null;
}

/** A key that distinguishes two checkpoints written to the same URI by different attempts. */
export const checkpointKey = ({ uri, attempt }: Checkpoint): string => `${uri}@${attempt ?? ''}`;

/** Who or what requested the end of a job. */
export type StopWhy = 'user' | 'hang' | 'spend' | 'hand-over';

/** A request of the control plane that the attempt saves and exits early. */
export interface HandOver {
  /** `preempted`: in favour of another run; `resized`: to continue with more instances. */
  why: 'preempted' | 'resized';
  at: EpochMs;
  /** When the request was last written to where the driver polls for it; undefined = not yet. */
  sentAt?: EpochMs;
  text: string;
}

/** A requested stop, and when it was requested. */
export interface AttemptStop {
  why: StopWhy;
  at: EpochMs;
  /** When StopTrainingJob was last sent; undefined = not yet. */
  sentAt?: EpochMs;
  /** When the service accepted it while the job could not be described. */
  acceptedAt?: EpochMs;
  /** The service refused it because the job was over already. @default false */
  isTooLate?: boolean;
  text: string;
}

/** Training metrics from the heartbeat; null = not known. */
export interface Vitals {
  /** The first step that the driver of this attempt saw; absent in heartbeats of older drivers. */
  firstStep?: number | null;
  loss: number | null;
  /** The trainer's own text about a loss outside its bounds. */
  lossAlert: string | null;
  slowHost: { host: string; what: string; ratio: number } | null;
  stepsPerHour: number | null;
  /** Median of the preceding hour. */
  usualStepsPerHour: number | null;
  /** In-place restarts of this attempt. */
  restarts: number;
  /** The driver has passed on a request to save and exit. @default false */
  handOver?: boolean;
  /** Hosts that a spare host replaced in this attempt; absent in records of older versions. */
  setAside?: { host: string; reason: string }[];
  /** Number of spare hosts that are still available. @default null */
  sparesLeft?: number | null;
  /** Mean utilisation of the GPUs over all hosts and samples of the attempt; absent when no host reports it. */
  gpuUtilizationPercent?: number;
  /** Why a program that ended with exit code 0 may not have done what it was asked for; absent when nothing suggests that. */
  endedEarly?: string;
}

/** The last sign of progress, by the clock of S3 (`at`) and by ours (`seenAt`). */
export interface Progress {
  step: number | null;
  phase: string;
  /** When the heartbeat object was last written, S3's clock. */
  beatAt: EpochMs;
  /** When step or phase last changed, by our clock. */
  movedAt: EpochMs;
  /** Absent with older drivers. */
  vitals?: Vitals;
  /** Every start of the attempt's ranks that a heartbeat has reported; absent with older drivers. */
  starts?: StartTimes[];
  /** How many of them belong to earlier driver processes of this attempt. @default 0 */
  earlierStarts?: number;
}

/** Where the job of an attempt writes: the control plane reads its heartbeat and checkpoints there. */
export interface JobFiles {
  /** URI of the object that its driver writes every minute. */
  heartbeat: string;
  /** Prefix of its checkpoints, and the marker of a custom script's; undefined when commits cannot be observed. */
  checkpoints?: { prefix: string; marker?: string };
}

/** One SageMaker job of a run, as last observed. */
export interface Attempt {
  number: number;
  jobName: string;
  /** `intent`: the name is fixed, and it is not yet known whether the job exists. `created`: the job is ours. `ended`: the job is over. */
  phase: 'intent' | 'created' | 'ended';
  rungId: string;
  resumeFrom: Checkpoint | null;
  intentAt: EpochMs;
  createTries: number;
  lastCreateAt?: EpochMs;
  /**
   * How many of the create calls certainly made no job: when none of them did, another rung may be tried under the same name. @default 0
   */
  unmadeTries?: number;
  jobArn?: string;
  /** CreationTime of the job by the service's clock: a job that reuses the name has another one. */
  jobCreatedAt?: EpochMs;
  acceptedAt?: EpochMs;
  /** From the descriptor, read with the first observation of the job; absent before it, and in records of older versions. */
  files?: JobFiles;
  status: string;
  secondaryStatus: string;
  trainingStartedAt?: EpochMs;
  /** When training last started on the instances: after an interruption the driver starts again. Absent in records of older versions. */
  trainingSince?: EpochMs;
  /** Periods without instances after the job had had them. Absent in records of older versions. */
  pauses?: Pauses;
  /** The alternative that the service chose; undefined = the cluster of the rung, or not known yet. */
  selected?: { instanceType: string; instanceCount: number };
  /** Newest usable committed step when the attempt began; null = none. */
  committedAtStart: number | null;
  progress?: Progress;
  firstStep: number | null;
  lastStep: number | null;
  /** When the service last reported the job as alive although its heartbeat was late; undefined = it was not late. */
  aliveAt?: EpochMs;
  /** Since when the heartbeat could not be read; undefined = it could be read, or did not exist. */
  unreadSince?: EpochMs;
  /** When the hang rule first matched; a stop requires a second observation, later by our own clock. */
  suspectedHangAt?: EpochMs;
  /**
   * Time of the last heartbeat, when it was read so long after it that the next ones are missing, while Describe fails; undefined = none is
   * missing, or that is not known.
   */
  silentBeat?: EpochMs;
  /** Since when Describe fails, so that the state of the job is unknown; undefined = it answers. */
  undescribedSince?: EpochMs;
  /** When Describe first did not find a job that it had found before: a single wrong answer must not start a second job. */
  absentSince?: EpochMs;
  /** The job as it was first seen over, while its end cannot be judged because its checkpoints cannot be listed. */
  over?: PresentJob;
  stop?: AttemptStop;
  handOver?: HandOver;
  endedAt?: EpochMs;
  failureClass?: FailureClass | 'completed' | 'stopped';
  reason: string;
  costUsd: number | null;
}

/** Counters against the limits of lib/core/lifecycle/budgets.ts. */
export interface Budgets {
  /** Attempts that failed without committing anything new; limited by `limits.maxAttempts`. */
  failures: number;
  /** Consecutive failed attempts without a newer committed step, with a cause that is likely to repeat. */
  stale: number;
  /** The same for failures of the service or the storage. */
  stalePlatform: number;
  /** Number of failures of the whole run by class. */
  byClass: Partial<Record<FailureClass, number>>;
  capacitySince?: EpochMs;
  capacityTries: number;
}

/** A notification that is sent once. */
export interface Notice {
  id: string;
  alert: string;
  text: string;
  /** Page in docs/runbooks/. */
  runbook: string;
  at: EpochMs;
}

/** The item of a run in the run table, with the version that conditional writes compare. */
export interface RunRecord {
  runId: string;
  name: string;
  team: string;
  environment: string;
  kind: 'training' | 'processing';
  configHash: string;
  version: number;
  createdAt: EpochMs;
  state: RunState;
  desired: 'run' | 'stop';
  reason: string;
  /** The caller has confirmed its uploads. */
  confirmed: boolean;
  /** The queue has admitted it. */
  admitted: boolean;
  /** When the queue last admitted it: a run is admitted again after it was preempted, resumed, or sent back because a quota was used up. */
  admittedAt?: EpochMs;
  /** Number of attempts that it had had by then. Absent in records of older versions. */
  attemptsAtAdmission?: number;
  priority: number;
  after: string[];
  policy: RunPolicy;
  /** Tags of the run. @default - none; records of older versions have no tags */
  tags?: Record<string, string>;
  /** A note that a person wrote about the run. */
  note?: string;
  budgets: Budgets;
  attempt?: Attempt;
  rungId: string;
  notBefore?: EpochMs;
  committed: Checkpoint | null;
  /** Keys of committed checkpoints that could not be read; the run never resumes from them again. */
  badCheckpoints: string[];
  /** Windows of the data that rollbacks have skipped. */
  skips?: Skip[];
  /** The newest rollback; every later attempt carries it. */
  rollback?: Rollback;
  /** Cost of the ended attempts; null once a price was not known. */
  spentUsd: number | null;
  /** Share of the on-demand price that was billed for ended spot attempts. @default - expected from the catalog's spot price */
  spotShare?: number;
  /** The warm pool that the last attempt left: it is billed until the next attempt takes it over or it expires. */
  warmPool?: WarmPool;
  /** The warm pool that a finished run left; `spentUsd` already includes its cost. */
  leftPool?: WarmPool;
  /** When a person had the run's files deleted; undefined = they are kept. */
  filesDeletedAt?: EpochMs;
  /**
   * Warm pools of earlier attempts, booked up to the start of the next job: that job may have got another pool of the account instead.
   * @default - none
   */
  earlierPools?: EarlierPool[];
  /** Request id of the start by a person. @default - none: a registered run, or a run of an earlier version; its record never expires */
  requestId?: string;
  /** When it last joined the queue; a preempted run keeps this time. @default `createdAt` (records of older versions) */
  queuedAt?: EpochMs;
  /** Room that the queue reserves for its next attempt: a larger rung, and since when. @default - none */
  roomFor?: { rungId: string; since: EpochMs };
  /** When an elastic run last failed to get capacity for a size. @default - never */
  sizeFailedAt?: EpochMs;
  /** When it last went back to the queue to make room for another run. @default - never */
  preemptedAt?: EpochMs;
  endedAt?: EpochMs;
  /** When attempts of the last day failed, oldest first. @default - none */
  restarts?: EpochMs[];
  /** Active alerts, so that each is raised only once. */
  alerts: string[];
  /** Notices that are not published yet. */
  outbox: Notice[];
}

/** What is needed to ask the service about the job of an attempt. */
export type PoolAttempt = Pick<Attempt, 'number' | 'jobName'>;

/** Instances that the service keeps after a job. */
export interface WarmPool {
  /** The attempt that left it. @default - not known (records of older versions) */
  attempt?: PoolAttempt;
  /** null = the price is not known. */
  usdPerHour: number | null;
  since: EpochMs;
  /** When they are released, unless another job takes them over first. */
  until: EpochMs;
  /** The service has reported how long they were kept. @default - the service is asked after `until` */
  isFinal?: boolean;
}

/** A pool whose cost is booked up to `bookedUntil`, until the service reports how long it was kept. */
export interface EarlierPool extends WarmPool {
  attempt: PoolAttempt;
  bookedUntil: EpochMs;
}

/** Whether the run is completed, failed or stopped. */
export const isOver = (record: Pick<RunRecord, 'state'>): boolean => OVER.includes(record.state);

/** Whether the run still has to wait for its start time or a backoff. */
export const isWaiting = ({ notBefore }: Pick<RunRecord, 'notBefore'>, now: EpochMs): boolean =>
  notBefore !== undefined && notBefore > now;

/** Budgets of a run that has not failed yet. */
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
