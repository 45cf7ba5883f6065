/**
 * Number of instances that a run takes from each pool; the keys are quota codes, and `environment` for the guardrail
 * `maxConcurrentInstances`.
 */
export type PoolNeeds = Readonly<Record<string, number>>;

/** Pool of the environment's own limit on instances. */
export const ENVIRONMENT_POOL = 'environment';

/** A run that holds instances. */
export interface RunningRun {
  runId: string;
  team: string;
  /** Number of instances, for the team's share when its needs by pool are not known. */
  instances: number;
  needs: PoolNeeds;
}

/** One size of an elastic run. */
export interface QueueSize {
  /** Id of one of the capacity options of the run. */
  capacityOptionId: string;
  instances: number;
  needs: PoolNeeds;
}

/** A run that waits for instances. */
export interface QueuedRun extends RunningRun {
  name: string;
  priority: number;
  /** Smaller sizes that it also accepts, largest first. @default none */
  smaller?: readonly QueueSize[];
  /** Epoch milliseconds. */
  queuedAt: number;
  /** Start of the current wait, epoch milliseconds: a preempted run has trained since it first joined. @default `queuedAt` */
  waitingSince?: number;
  /** Run ids, or `latest:<run name>`, that must complete first and have not. */
  after: readonly string[];
  /** Why its team may not start new runs now. @default - it may */
  hold?: string;
  /** Earliest start, epoch milliseconds: the end of a backoff, or the requested start time. */
  notBefore?: number;
}

/** Start of a run's current wait, epoch milliseconds. */
export const waitsSince = ({ waitingSince, queuedAt }: QueuedRun): number => waitingSince ?? queuedAt;

/** Limit and use of a pool. `null` = not known: the service itself will refuse. */
export interface PoolLimit {
  limit: number | null;
  /** Used by jobs that are not ours. */
  usedByOthers: number;
  /** The limit or the use by others could not be read just now: no job is asked to exit for capacity that may not exist. @default false */
  isUnread?: boolean;
  /** Display name: `ml.p5.48xlarge for training job usage`. */
  name: string;
}
