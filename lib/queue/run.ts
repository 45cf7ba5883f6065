/** How many of each pool a run takes: quota codes, and `environment` for the guardrail `maxConcurrentInstances`. */
export type PoolNeeds = Readonly<Record<string, number>>;

/** Pool of the environment's own limit of instances. */
export const ENVIRONMENT_POOL = 'environment';

/** A run that holds instances. */
export interface RunningRun {
  runId: string;
  team: string;
  /** Instances it holds, for the team's share. */
  instances: number;
  needs: PoolNeeds;
}

/** One size of an elastic run. */
export interface QueueSize {
  /** Rung of its ladder. */
  rungId: string;
  instances: number;
  needs: PoolNeeds;
}

/** A run that waits for instances. */
export interface QueuedRun extends RunningRun {
  name: string;
  priority: number;
  /** Smaller sizes that it takes as well, largest first. @default none */
  smaller?: readonly QueueSize[];
  /** Epoch milliseconds. */
  queuedAt: number;
  /** Since when it waits now, epoch milliseconds: a run that made room has trained since it joined. @default `queuedAt` */
  waitingSince?: number;
  /** Run ids, or `latest:<run name>`, that must have completed. */
  after: readonly string[];
  /** Why its team may start nothing new now. @default - it may */
  hold?: string;
  /** Not before this time, epoch milliseconds: a back-off is on, or it was started for this time. */
  notBefore?: number;
}

/** Since when a run waits, epoch milliseconds. */
export const waitsSince = ({ waitingSince, queuedAt }: QueuedRun): number => waitingSince ?? queuedAt;

/** What a pool holds. `null` = not known: the service will say so itself. */
export interface PoolLimit {
  limit: number | null;
  /** Taken by jobs that are not ours. */
  usedByOthers: number;
  /** The limit or the use by others could not be read now: no job is asked to leave for room that may not be there. @default false */
  isUnread?: boolean;
  /** As a reader knows it: `ml.p5.48xlarge for training job usage`. */
  name: string;
}
