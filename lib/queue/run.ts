/** How many of each pool a run takes: quota codes, and `environment` for the guardrail `maxConcurrentInstances`. */
export type PoolNeeds = Readonly<Record<string, number>>;

export const ENVIRONMENT_POOL = 'environment';

export interface RunningRun {
  runId: string;
  team: string;
  /** Instances it holds, for the team's share. */
  instances: number;
  needs: PoolNeeds;
}

export interface QueuedRun extends RunningRun {
  name: string;
  priority: number;
  /** Epoch milliseconds. */
  queuedAt: number;
  /** Run ids, or `latest:<run name>`, that must have completed. */
  after: readonly string[];
  /** Not before this time, epoch milliseconds: a back-off is on. */
  notBefore?: number;
}

/** What a pool holds. `null` = not known: the service will say so itself. */
export interface PoolLimit {
  limit: number | null;
  /** Taken by jobs that are not ours. */
  usedByOthers: number;
  /** As a reader knows it: `ml.p5.48xlarge for training job usage`. */
  name: string;
}
