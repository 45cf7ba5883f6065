/** Epoch milliseconds. */
export type EpochMs = number;

/** Periods in which a job that had had its instances was without them: it neither trains nor is billed. */
export interface Pauses {
  /** Total length of the finished pauses, milliseconds. */
  readonly ms: number;
  /** Start of the pause that is still going on. */
  readonly since?: EpochMs;
  /** Number of pauses, including the current one. @default - none, or not counted: records of older versions */
  readonly times?: number;
}

/** A job as returned by DescribeTrainingJob; times in epoch milliseconds. */
export interface PresentJob {
  readonly kind: 'present';
  readonly arn: string;
  /** InProgress, Stopping, Completed, Failed, Stopped, Deleting. */
  readonly status: string;
  readonly secondaryStatus: string;
  readonly failureReason: string;
  /** According to the service's clock. */
  readonly createdAt: EpochMs;
  readonly trainingStartedAt?: EpochMs;
  /** Start of its most recent Training status; later than `trainingStartedAt` after an interruption. */
  readonly trainingSince?: EpochMs;
  /** Periods without instances after the job had had them. */
  readonly pauses?: Pauses;
  /** Which of the preferred instance types the service chose. */
  readonly selected?: { readonly instanceType: string; readonly instanceCount: number };
  readonly endedAt?: EpochMs;
  /** Per instance; for spot, the time that remains after the discount. */
  readonly billableSeconds?: number;
  /** The service keeps the instances after the job; `retainedSeconds` is set once it no longer keeps them. */
  readonly warmPool?: { readonly isKept: boolean; readonly retainedSeconds: number };
  /** Last value of the metric `slipway:step`. */
  readonly lastStep?: number;
  /** Whether the job belongs to this run and attempt. `unread`: neither the job itself nor its tags show it. */
  readonly identity: 'ours' | 'foreign' | 'unread';
}
