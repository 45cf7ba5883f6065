import type { Rollback, Skip } from '../spec/job-file';

/**
 * What the run table holds of one run. Pure data; every write replaces it under a condition on `version`.
 * All times are epoch milliseconds of our own clock unless the comment says whose clock it is.
 */
export type EpochMs = number;

/** Time in which a job that has had its instances was without them: nobody trains, and nothing is billed. */
export interface Pauses {
  /** Of the pauses that are over, milliseconds. */
  ms: number;
  /** Start of the one that is not over. */
  since?: EpochMs;
  /** How many there were, that one too. @default - none, or not counted: records of older versions */
  times?: number;
}

/** One start of an attempt's ranks, as the driver timed it. Start 0 begins with the job, each restart in place is the next. */
export interface StartTimes {
  number: number;
  firstStep: number | null;
  firstStepAt: EpochMs | null;
  step: number | null;
  stepAt: EpochMs | null;
  /** Null while its ranks run. */
  endedAt: EpochMs | null;
}

/** State of a run as the table holds it. */
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

/** States in which nothing more is done for a run. */
export const OVER: readonly RunState[] = ['completed', 'failed', 'stopped'];

/** Why an attempt failed, by what has to follow. */
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

/** One way to ask for capacity. Rung 0 is the run file as written. */
export interface Rung {
  /** `as-written`, `on-demand`. */
  id: string;
  /** Of the whole job, its spare hosts among them. */
  instances: { instanceType: string; instanceCount: number }[];
  usage: 'training' | 'spot' | 'training-plan' | 'processing';
  /** Of the whole cluster, list or negotiated price; null = not known. Spot: the on-demand price, which the service discounts by time. */
  usdPerHour: number | null;
  /** Spot only: what an hour is expected to cost while nobody has billed it yet. @default `usdPerHour` times SPOT_SHARE */
  expectedUsdPerHour?: number | null;
  /** Clusters that the service may choose instead, with their own prices. @default none */
  alternatives?: { instanceType: string; instanceCount: number; usdPerHour: number | null }[];
}

/** What the run file decided once and for all. */
export interface RunPolicy {
  maxAttempts: number;
  maxRuntimeSeconds: number;
  maxCostUsd: number | null;
  /** How long the run may wait for capacity in one go before a person is asked. */
  capacityBudgetSeconds: number;
  startupMinutes: number;
  silenceMinutes: number;
  /** Steps are visible: the built-in trainer, or `progress.stepRegex`. Without it the hang rules alert and never stop. */
  seesSteps: boolean;
  /** Committed checkpoints are visible from outside. Without it the no-progress rule alerts and never stops. */
  seesCommits: boolean;
  /** The run file names checkpoints at all, seen from outside or not. @default true (records of older versions) */
  keepsCheckpoints?: boolean;
  /** The driver writes heartbeats: not under the toolkit contract or network isolation. @default `seesSteps` (records of older versions) */
  beats?: boolean;
  checkpointIntervalSeconds: number;
  ladder: Rung[];
  /** How long the service keeps the instances of a job that is over. @default 0 */
  keepAliveSeconds?: number;
  /** How many of the instances of each rung are spare hosts. @default 0 */
  spareInstances?: number;
  /** What a loss that left its bounds (exit code 73) means. @default stop (records of older versions have none) */
  lossPolicy?: 'stop' | 'rollback';
  /** Steps of the whole run, where the run file says them. */
  totalSteps?: number;
  /** Elastic runs: after this long without instances the service stops a job. @default `capacityBudgetSeconds` */
  pendingSeconds?: number;
  /** The queue may ask its job to save and leave for a run that goes first. @default false */
  preemptible?: boolean;
}

/** A complete checkpoint: its step, and where it lies. */
export interface Checkpoint {
  uri: string;
  step: number;
  /** The attempt that wrote it; null where nothing says so (an own script's marker). A later attempt may write the same folder again. */
  attempt: number | null;
}

/** What tells one writing of a checkpoint from another. */
export const checkpointKey = ({ uri, attempt }: Checkpoint): string => `${uri}@${attempt ?? ''}`;

/** Who or what asked for the end of a job. */
export type StopWhy = 'user' | 'hang' | 'spend' | 'hand-over';

/** The control plane wants the attempt to save and leave before its end. */
export interface HandOver {
  /** For another run, or to go on with more instances. */
  why: 'preempted' | 'resized';
  at: EpochMs;
  /** When the request was last written to where the driver looks; undefined = not yet. */
  sentAt?: EpochMs;
  text: string;
}

/** A stop that was asked for, and when. */
export interface AttemptStop {
  why: StopWhy;
  at: EpochMs;
  /** When StopTrainingJob was last sent; undefined = not yet. */
  sentAt?: EpochMs;
  text: string;
}

/** How training goes, as the heartbeat says it; null = not known. */
export interface Vitals {
  /** The first step that the driver of this attempt saw; absent in heartbeats of older drivers. */
  firstStep?: number | null;
  loss: number | null;
  /** The trainer's own words about a loss that left its bounds. */
  lossAlert: string | null;
  slowHost: { host: string; what: string; ratio: number } | null;
  stepsPerHour: number | null;
  /** Median of the hour before. */
  usualStepsPerHour: number | null;
  /** Restarts in place of this attempt. */
  restarts: number;
  /** The driver has passed a request to save and leave on. @default false */
  handOver?: boolean;
  /** Hosts whose place a spare one took, in this attempt; absent in records of older versions. */
  setAside?: { host: string; reason: string }[];
  /** Spare hosts that still wait. @default null */
  sparesLeft?: number | null;
  /** Mean utilisation of the GPUs over all hosts and looks of the attempt; absent where none tells it. */
  gpuUtilizationPercent?: number;
}

/** The last sign of movement, by the clock of S3 (`at`) and by ours (`seenAt`). */
export interface Progress {
  step: number | null;
  phase: string;
  /** When the heartbeat object was last written, S3's clock. */
  beatAt: EpochMs;
  /** When step or phase last changed, our clock. */
  movedAt: EpochMs;
  /** Absent in heartbeats of older drivers. */
  vitals?: Vitals;
  /** Every start of the attempt's ranks that a heartbeat has named; absent with older drivers. */
  starts?: StartTimes[];
  /** How many of them were those of drivers before the present one. @default 0 */
  earlierStarts?: number;
}

/** Where the job of an attempt writes: the control plane looks for its signs of life and its work there. */
export interface JobFiles {
  /** URI of the object that its driver writes every minute. */
  heartbeat: string;
  /** Prefix of its checkpoints, and the marker of an own script's; undefined where no commit can be seen. */
  checkpoints?: { prefix: string; marker?: string };
}

/** One SageMaker job of a run, as last seen. */
export interface Attempt {
  number: number;
  jobName: string;
  /** `intent`: name fixed, existence not yet known. `created`: the job is ours. `ended`: it is over. */
  phase: 'intent' | 'created' | 'ended';
  rungId: string;
  resumeFrom: Checkpoint | null;
  intentAt: EpochMs;
  createTries: number;
  lastCreateAt?: EpochMs;
  /** How many of the creates certainly made no job: when all of them, another rung may be tried under the same name. @default 0 */
  unmadeTries?: number;
  jobArn?: string;
  /** CreationTime of the job, the service's clock: a reused name has another one. */
  jobCreatedAt?: EpochMs;
  acceptedAt?: EpochMs;
  /** By the descriptor of the first look at the job; absent before it, and in records of older versions. */
  files?: JobFiles;
  status: string;
  secondaryStatus: string;
  trainingStartedAt?: EpochMs;
  /** When the instances last began to train: after an interruption the driver starts again. Absent in records of older versions. */
  trainingSince?: EpochMs;
  /** When it was without instances after it had had them. Absent in records of older versions. */
  pauses?: Pauses;
  /** The alternative that the service chose; undefined = the cluster of the rung, or not known yet. */
  selected?: { instanceType: string; instanceCount: number };
  /** Newest usable committed step when the attempt began; null = none. */
  committedAtStart: number | null;
  progress?: Progress;
  firstStep: number | null;
  lastStep: number | null;
  /** When the service last said that the job was alive although its heartbeat was late; undefined = it was not late. */
  aliveAt?: EpochMs;
  /** Since when the heartbeat could not be read; undefined = it could, or was not there. */
  unreadSince?: EpochMs;
  /** First time the hang rule was met; the stop needs a second look by our own clock. */
  suspectedHangAt?: EpochMs;
  /** First time Describe did not know a job that it had known: one wrong answer must not start a second job. */
  absentSince?: EpochMs;
  stop?: AttemptStop;
  handOver?: HandOver;
  endedAt?: EpochMs;
  failureClass?: FailureClass | 'completed' | 'stopped';
  reason: string;
  costUsd: number | null;
}

/** Counters against the limits of lib/lifecycle/budgets.ts. */
export interface Budgets {
  /** Attempts that failed and committed nothing new; `limits.maxAttempts` bounds it. */
  failures: number;
  /** Failed attempts in a row without a newer committed step, whose cause may repeat itself. */
  stale: number;
  /** The same for failures that the service itself took the blame for. */
  stalePlatform: number;
  /** Failures by class over the whole run. */
  byClass: Partial<Record<FailureClass, number>>;
  capacitySince?: EpochMs;
  capacityTries: number;
}

/** Something that people are told once. */
export interface Notice {
  id: string;
  alert: string;
  text: string;
  /** Page in docs/runbooks/. */
  runbook: string;
  at: EpochMs;
}

/** The run as the table holds it, with the version that conditional writes compare. */
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
  /** The queue has let it start. */
  admitted: boolean;
  /** When it was last let start: after it was preempted, resumed, or sent back for want of a quota, it is let start again. */
  admittedAt?: EpochMs;
  /** Attempts that it had had by then. Absent in records of older versions. */
  attemptsAtAdmission?: number;
  priority: number;
  after: string[];
  policy: RunPolicy;
  /** Tags of the run file. @default - none, or those of a record of an older version, which has none */
  tags?: Record<string, string>;
  /** What a person wrote about it. */
  note?: string;
  budgets: Budgets;
  attempt?: Attempt;
  rungId: string;
  notBefore?: EpochMs;
  committed: Checkpoint | null;
  /** Keys of committed checkpoints that could not be read; never resumed from again. */
  badCheckpoints: string[];
  /** Windows of the data that rollbacks have left out. */
  skips?: Skip[];
  /** The newest rollback; every later attempt carries it. */
  rollback?: Rollback;
  /** Of ended attempts; null once a price was not known. */
  spentUsd: number | null;
  /** Share of the on-demand price that ended spot attempts were billed. @default - expected from the catalog's spot price */
  spotShare?: number;
  /** The warm pool that the last attempt left: it is billed until the next attempt takes it over or it expires. */
  warmPool?: WarmPool;
  /** The same of a run that is over: `spentUsd` has what it costs until then. */
  leftPool?: WarmPool;
  /** When it last joined the queue; a run that was preempted keeps it. @default `createdAt` (records of older versions) */
  queuedAt?: EpochMs;
  /** Room that the queue keeps for its next attempt: a larger rung, and since when. @default - none */
  roomFor?: { rungId: string; since: EpochMs };
  /** When an elastic run last found no capacity for a size. @default - never */
  sizeFailedAt?: EpochMs;
  /** When it last went back to the queue for another run. @default - it never did */
  preemptedAt?: EpochMs;
  endedAt?: EpochMs;
  /** Alerts that have been raised and not cleared, so that each is raised once. */
  alerts: string[];
  /** Notices that wait to be published. */
  outbox: Notice[];
}

/** Instances that the service keeps after a job. */
export interface WarmPool {
  /** null = the price is not known. */
  usdPerHour: number | null;
  since: EpochMs;
  /** When they are given back, unless another job takes them over first. */
  until: EpochMs;
  /** The service has said how long they were kept. @default - it is asked after `until` */
  isFinal?: boolean;
}

/** Whether the run is completed, failed or stopped. */
export const isOver = (record: Pick<RunRecord, 'state'>): boolean => OVER.includes(record.state);

/** A time or a back-off that it was told to wait for is not over. */
export const isWaiting = ({ notBefore }: Pick<RunRecord, 'notBefore'>, now: EpochMs): boolean =>
  notBefore !== undefined && notBefore > now;

/** Budgets of a run that has not failed. */
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
