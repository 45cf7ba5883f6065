/** A window of the training data that is skipped: `batches` global batches before the step that follows `step`. */
export interface Skip {
  step: number;
  batches: number;
}

/** Checkpoints after `toStep` that attempts before `beforeAttempt` wrote are no longer valid. */
export interface Rollback {
  toStep: number;
  beforeAttempt: number;
}

/** Failures of a run's earlier attempts, and the node-days in which they happened. */
export interface FailureHistory {
  failures: number;
  nodeDays: number;
}

/** UUIDs of GPUs: those on which a job must not start, and those that get the full health check. */
export interface KnownGpus {
  bad: string[];
  suspect: string[];
}
