/** Epoch milliseconds. */
export type EpochMs = number;

/** Periods in which a job that had had its instances was without them: it neither trains nor is billed. */
export interface Pauses {
  /** Total length of the finished pauses, milliseconds. */
  ms: number;
  /** Start of the pause that is still going on. */
  since?: EpochMs;
  /** Number of pauses, including the current one. @default - none, or not counted: records of older versions */
  times?: number;
}

/** A job as returned by DescribeTrainingJob; times in epoch milliseconds. */
export interface PresentJob {
  kind: 'present';
  arn: string;
  /** InProgress, Stopping, Completed, Failed, Stopped, Deleting. */
  status: string;
  secondaryStatus: string;
  failureReason: string;
  /** According to the service's clock. */
  createdAt: EpochMs;
  trainingStartedAt?: EpochMs;
  /** Start of its most recent Training status; later than `trainingStartedAt` after an interruption. */
  trainingSince?: EpochMs;
  /** Periods without instances after the job had had them. */
  pauses?: Pauses;
  /** Which of the preferred instance types the service chose. */
  selected?: { instanceType: string; instanceCount: number };
  endedAt?: EpochMs;
  /** Per instance; for spot, the time that remains after the discount. */
  billableSeconds?: number;
  /** The service keeps the instances after the job; `retainedSeconds` is set once it no longer keeps them. */
  warmPool?: { isKept: boolean; retainedSeconds: number };
  /** Last value of the metric `slipway:step`. */
  lastStep?: number;
  /** Whether the job belongs to this run and attempt. `unread`: neither the job itself nor its tags show it. */
  identity: 'ours' | 'foreign' | 'unread';
}
