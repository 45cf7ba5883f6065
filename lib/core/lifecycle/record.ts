import type { Rollback, Skip } from '../config/job-file';
import type { RunState } from '../contracts/control-requests';
import type { EpochMs, Pauses, PresentJob } from './present-job';

export type { RunState } from '../contracts/control-requests';
export type { EpochMs } from './present-job';

/**
 * One start of an attempt's ranks, with the times that the driver measured. Start 0 begins with the job; each in-place restart is the next
 * one.
 */
export interface StartTimes {
  readonly number: number;
  readonly firstStep: number | null;
  readonly firstStepAt: EpochMs | null;
  readonly step: number | null;
  readonly stepAt: EpochMs | null;
  /** Null while its ranks are running. */
  readonly endedAt: EpochMs | null;
  /** Seconds before the first step by phase. @default - from a driver that does not count them */
  readonly phases?: Readonly<Record<string, number>>;
}

/** States in which a run needs no further work. */
export const OVER: readonly RunState[] = ['completed', 'failed', 'stopped'];

/** Why an attempt failed, grouped by the reaction that it needs. */
export const FAILURE_CLASSES = [
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
/** One of `FAILURE_CLASSES`. */
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/** One way to request capacity. Capacity option 0 is the run file as written. */
export interface CapacityOption {
  /** `as-written` or `on-demand`, for example. */
  readonly id: string;
  /** Instances of the whole job, including its spare hosts. */
  readonly instances: readonly { readonly instanceType: string; readonly instanceCount: number }[];
  readonly usage: 'training' | 'spot' | 'training-plan' | 'processing';
  /**
   * Price of the whole cluster, from the price list or negotiated; null = not known. For spot this is the on-demand price: the service
   * discounts spot by billing less time.
   */
  readonly usdPerHour: number | null;
  /** Spot only: expected cost of an hour before the service reports billed time. @default `usdPerHour` times SPOT_SHARE */
  readonly expectedUsdPerHour?: number | null;
  /** Clusters that the service may choose instead, with their own prices. @default none */
  readonly alternatives?: readonly {
    readonly instanceType: string;
    readonly instanceCount: number;
    readonly usdPerHour: number | null;
  }[];
}

/** Settings of the run file that stay fixed for the whole run. */
export interface RunPolicy {
  readonly maxAttempts: number;
  readonly maxRuntimeSeconds: number;
  /** The smaller of `limits.maxCostUsd` and the guardrail of the environment; null = no cap. */
  readonly maxCostUsd: number | null;
  /** The option that sets the cap. @default `limits.maxCostUsd` */
  readonly costCapFrom?: 'guardrails.maxCostPerRunUsd';
  /** How long the run may wait for capacity in one go before a person is notified. */
  readonly capacityBudgetSeconds: number;
  readonly startupMinutes: number;
  readonly silenceMinutes: number;
  /** Steps can be observed: the built-in trainer, or `progress.stepRegex`. Without it the hang rules only alert and never stop the run. */
  readonly seesSteps: boolean;
  /** Committed checkpoints can be observed from outside. Without it the no-progress rule only alerts and never stops the run. */
  readonly seesCommits: boolean;
  /** The run file configures checkpoints, whether or not they can be observed from outside. */
  readonly keepsCheckpoints: boolean;
  /** The driver writes heartbeats: not with the toolkit contract or network isolation. */
  readonly writesHeartbeats: boolean;
  readonly checkpointIntervalSeconds: number;
  readonly capacityOptions: readonly CapacityOption[];
  /** How long the service keeps the instances after a job has ended. */
  readonly keepAliveSeconds: number;
  /** How many of the instances of each capacity option are spare hosts. */
  readonly spareInstances: number;
  /** The reaction to exit code 73, a loss outside its bounds. */
  readonly lossPolicy: 'stop' | 'rollback';
  /** Total number of steps, if the run file states it. */
  readonly totalSteps?: number;
  /** Elastic runs: how long a job may be pending before the service stops it. @default `capacityBudgetSeconds` */
  readonly pendingSeconds?: number;
  /** The queue may ask its job to save and exit in favour of another run. */
  readonly preemptible: boolean;
}

/** A complete checkpoint: its step, and its location. */
export interface Checkpoint {
  readonly uri: string;
  readonly step: number;
  /**
   * The attempt that wrote it; null when it is not known (marker of a custom script). A later attempt may write to the same prefix again.
   */
  readonly attempt: number | null;
}

/** A key that distinguishes two checkpoints written to the same URI by different attempts. */
export const checkpointKey = ({ uri, attempt }: Checkpoint): string => `${uri}@${attempt ?? ''}`;

/** Who or what requested the end of a job. */
export type StopWhy = 'user' | 'hang' | 'spend' | 'hand-over';

/** A request of the control plane that the attempt saves and exits early. */
export interface HandOver {
  /** `preempted`: in favour of another run; `resized`: to continue with more instances. */
  readonly why: 'preempted' | 'resized';
  readonly at: EpochMs;
  /** When the request was last written to where the driver polls for it; undefined = not yet. */
  readonly sentAt?: EpochMs;
  readonly text: string;
}

/** A requested stop, and when it was requested. */
export interface AttemptStop {
  readonly why: StopWhy;
  readonly at: EpochMs;
  /** When StopTrainingJob was last sent; undefined = not yet. */
  readonly sentAt?: EpochMs;
  /** When the service accepted it while the job could not be described. */
  readonly acceptedAt?: EpochMs;
  /** The service refused it because the job was over already. @default false */
  readonly isTooLate?: boolean;
  readonly text: string;
}

/** What a job has found out about the hardware of one of its hosts. */
export interface GpuReport {
  readonly host: string;
  /** `gpu`: these GPUs are broken; `host`: the host is broken or slow, and these are its GPUs; `passed`: they have passed the full check. */
  readonly kind: 'gpu' | 'host' | 'passed';
  /** UUIDs. */
  readonly gpus: readonly string[];
  readonly reason: string;
}

/** Training metrics from the heartbeat; null = not known. */
export interface Vitals {
  /** The first step that the driver of this attempt saw; absent in heartbeats of older drivers. */
  readonly firstStep?: number | null;
  readonly loss: number | null;
  /** The trainer's own text about a loss outside its bounds. */
  readonly lossAlert: string | null;
  /** `host`: empty if the network is slow and no single host is the cause. */
  readonly slowHost: { readonly host: string; readonly what: string; readonly ratio: number } | null;
  readonly stepsPerHour: number | null;
  /** Median of the preceding hour. */
  readonly usualStepsPerHour: number | null;
  /** In-place restarts of this attempt. */
  readonly restarts: number;
  /** The driver has passed on a request to save and exit. @default false */
  readonly handOver?: boolean;
  /** Hosts that a spare host replaced in this attempt; absent in records of older versions. */
  readonly setAside?: readonly { readonly host: string; readonly reason: string }[];
  /** Hosts that were found broken or slow; absent in records of older versions. */
  readonly evidence?: readonly GpuReport[];
  /** Number of spare hosts that are still available. @default null */
  readonly sparesLeft?: number | null;
  /** Mean utilisation of the GPUs over all hosts and samples of the attempt; absent when no host reports it. */
  readonly gpuUtilizationPercent?: number;
  /** Why a program that ended with exit code 0 may not have done what it was asked for; absent when nothing suggests that. */
  readonly endedEarly?: string;
}

/** The last sign of progress, by the clock of S3 (`at`) and by ours (`seenAt`). */
export interface Progress {
  readonly step: number | null;
  readonly phase: string;
  /** When the heartbeat object was last written, S3's clock. */
  readonly heartbeatAt: EpochMs;
  /** When step or phase last changed, by our clock. */
  readonly movedAt: EpochMs;
  /** When the first driver of the attempt began, by S3's clock; absent with older drivers. */
  readonly beganAt?: EpochMs;
  /** Absent with older drivers. */
  readonly vitals?: Vitals;
  /** Every start of the attempt's ranks that a heartbeat has reported; absent with older drivers. */
  readonly starts?: readonly StartTimes[];
  /** How many of them belong to earlier driver processes of this attempt. @default 0 */
  readonly earlierStarts?: number;
}

/** Where the job of an attempt writes: the control plane reads its heartbeat and checkpoints there. */
export interface JobFiles {
  /** URI of the object that its driver writes every minute. */
  readonly heartbeat: string;
  /** Prefix of its checkpoints, and the marker of a custom script's; undefined when commits cannot be observed. */
  readonly checkpoints?: { readonly prefix: string; readonly marker?: string };
}

/** One SageMaker job of a run, as last observed. */
export interface Attempt {
  readonly number: number;
  readonly jobName: string;
  /** `intent`: the name is fixed, and it is not yet known whether the job exists. `created`: the job is ours. `ended`: the job is over. */
  readonly phase: 'intent' | 'created' | 'ended';
  readonly capacityOptionId: string;
  readonly resumeFrom: Checkpoint | null;
  readonly intentAt: EpochMs;
  readonly createTries: number;
  readonly lastCreateAt?: EpochMs;
  /**
   * How many of the create calls certainly made no job: when none of them did, another capacity option may be tried under the same name.
   * @default 0
   */
  readonly unmadeTries?: number;
  readonly jobArn?: string;
  /** CreationTime of the job by the service's clock: a job that reuses the name has another one. */
  readonly jobCreatedAt?: EpochMs;
  readonly acceptedAt?: EpochMs;
  /** From the descriptor that the create call was made with, or read later; absent in records of older versions. */
  readonly files?: JobFiles;
  readonly status: string;
  readonly secondaryStatus: string;
  readonly trainingStartedAt?: EpochMs;
  /** When training last started on the instances: after an interruption the driver starts again. Absent in records of older versions. */
  readonly trainingSince?: EpochMs;
  /** Periods without instances after the job had had them. Absent in records of older versions. */
  readonly pauses?: Pauses;
  /** The alternative that the service chose; undefined = the cluster of the capacity option, or not known yet. */
  readonly selected?: { readonly instanceType: string; readonly instanceCount: number };
  /** Newest usable committed step when the attempt began; null = none. */
  readonly committedAtStart: number | null;
  readonly progress?: Progress;
  readonly firstStep: number | null;
  readonly lastStep: number | null;
  /** When the service last reported the job as alive although its heartbeat was late or could never be read; undefined = neither. */
  readonly aliveAt?: EpochMs;
  /** Since when the heartbeat could not be read; undefined = it could be read, or did not exist. */
  readonly unreadSince?: EpochMs;
  /** Since when the checkpoints could not be listed while the job was live; undefined = the last listing succeeded. */
  readonly unlistedSince?: EpochMs;
  /** When the hang rule first matched; a stop requires a second observation, later by our own clock. */
  suspectedHangAt?: EpochMs;
  /**
   * Time of the last heartbeat, when it was read so long after it that the next ones are missing, while Describe fails or does not find the
   * job; undefined = none is missing, or that is not known.
   */
  readonly silentHeartbeat?: EpochMs;
  /** Since when Describe fails, so that the state of the job is unknown; undefined = it answers. */
  readonly undescribedSince?: EpochMs;
  /** When Describe first did not find a job that it had found before: a single wrong answer must not start a second job. */
  readonly absentSince?: EpochMs;
  /** The job as it was first seen over, while its end cannot be judged because its checkpoints cannot be listed. */
  readonly over?: PresentJob;
  readonly stop?: AttemptStop;
  readonly handOver?: HandOver;
  readonly endedAt?: EpochMs;
  readonly failureClass?: FailureClass | 'completed' | 'stopped';
  readonly reason: string;
  readonly costUsd: number | null;
}

/** Counters against the limits of lib/core/lifecycle/budgets.ts. */
export interface Budgets {
  /** Attempts that failed without committing anything new; limited by `limits.maxAttempts`. */
  readonly failures: number;
  /** Consecutive failed attempts without a newer committed step, with a cause that is likely to repeat. */
  readonly stale: number;
  /** The same for failures of the service or the storage. */
  readonly stalePlatform: number;
  /** Number of failures of the whole run by class. */
  readonly byClass: Partial<Readonly<Record<FailureClass, number>>>;
  readonly capacitySince?: EpochMs;
  readonly capacityTries: number;
}

/** A notification that is sent once. */
export interface Notice {
  readonly id: string;
  readonly alert: string;
  readonly text: string;
  /** Section of docs/runbooks.md. */
  readonly runbook: string;
  readonly at: EpochMs;
}

/**
 * The item of a run in the run table. Pure data, which is never changed in place: readers share it, and every write replaces the item, with a
 * condition on `version`. All times are epoch milliseconds by our own clock unless the comment names another clock.
 */
export interface RunRecord {
  readonly runId: string;
  readonly name: string;
  readonly team: string;
  readonly environment: string;
  readonly kind: 'training' | 'processing';
  readonly configHash: string;
  readonly version: number;
  readonly createdAt: EpochMs;
  readonly state: RunState;
  readonly desired: 'run' | 'stop';
  readonly reason: string;
  /** The caller has confirmed its uploads. */
  readonly confirmed: boolean;
  /** The queue has admitted it. */
  readonly admitted: boolean;
  /** When the queue last admitted it: a run is admitted again after it was preempted, resumed, or sent back because a quota was used up. */
  readonly admittedAt?: EpochMs;
  /** Number of attempts that it had had by then. Absent in records of older versions. */
  readonly attemptsAtAdmission?: number;
  readonly priority: number;
  readonly after: readonly string[];
  readonly policy: RunPolicy;
  /** Tags of the run. @default - none */
  readonly tags?: Readonly<Record<string, string>>;
  /** A note that a person wrote about the run. */
  readonly note?: string;
  readonly budgets: Budgets;
  readonly attempt?: Attempt;
  readonly capacityOptionId: string;
  readonly notBefore?: EpochMs;
  readonly committed: Checkpoint | null;
  /** Keys of committed checkpoints that could not be read; the run never resumes from them again. */
  readonly badCheckpoints: readonly string[];
  /** Windows of the data that rollbacks have skipped. */
  readonly skips?: readonly Readonly<Skip>[];
  /** The newest rollback; every later attempt carries it. */
  readonly rollback?: Readonly<Rollback>;
  /** Cost of the ended attempts; null once a price was not known. */
  readonly spentUsd: number | null;
  /** Share of the on-demand price that was billed for ended spot attempts. @default - expected from the catalog's spot price */
  readonly spotShare?: number;
  /** The warm pool that the last attempt left: it is billed until the next attempt takes it over or it expires. */
  readonly warmPool?: WarmPool;
  /** The warm pool that a finished run left; `spentUsd` already includes its cost. */
  readonly leftPool?: WarmPool;
  /** When a person had the run's files deleted; undefined = they are kept. */
  readonly filesDeletedAt?: EpochMs;
  /**
   * Warm pools of earlier attempts, booked up to the start of the next job: that job may have got another pool of the account instead.
   * @default - none
   */
  readonly earlierPools?: readonly EarlierPool[];
  /** Request id of the start by a person. @default - none: a registered run, or a run of an earlier version; its record never expires */
  readonly requestId?: string;
  /** When it last joined the queue; a preempted run keeps this time. Until its uploads are confirmed, when it was created. */
  readonly queuedAt: EpochMs;
  /** Capacity that the queue reserves for its next attempt: a larger capacity option, and since when. @default - none */
  readonly reservation?: { readonly capacityOptionId: string; readonly since: EpochMs };
  /** When an elastic run last failed to get capacity for a size. @default - never */
  readonly sizeFailedAt?: EpochMs;
  /** When it last went back to the queue because another run may use its capacity. @default - never */
  readonly preemptedAt?: EpochMs;
  readonly endedAt?: EpochMs;
  /** When attempts of the last day failed, oldest first. @default - none */
  readonly restarts?: readonly EpochMs[];
  /** Active alerts, so that each is raised only once. */
  readonly alerts: readonly string[];
  /** Notices that are not published yet. */
  readonly outbox: readonly Notice[];
}

/** What is needed to ask the service about the job of an attempt. */
export type PoolAttempt = Pick<Attempt, 'number' | 'jobName'>;

/** Instances that the service keeps after a job. */
export interface WarmPool {
  /** The attempt that left it. @default - not known (records of older versions) */
  readonly attempt?: PoolAttempt;
  /** null = the price is not known. */
  readonly usdPerHour: number | null;
  readonly since: EpochMs;
  /** When they are released, unless another job takes them over first. */
  readonly until: EpochMs;
  /** The service has reported how long they were kept. @default - the service is asked after `until` */
  readonly isFinal?: boolean;
}

/** A pool whose cost is booked up to `bookedUntil`, until the service reports how long it was kept. */
export interface EarlierPool extends WarmPool {
  readonly attempt: PoolAttempt;
  readonly bookedUntil: EpochMs;
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
