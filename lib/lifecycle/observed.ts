import type { Checkpoint, EpochMs, JobFiles, Pauses, StartTimes, Vitals } from './record';

/** What DescribeTrainingJob returned for the job of the current attempt. */
export type JobObservation =
  | { kind: 'not-asked' }
  | { kind: 'absent' }
  /** Describe failed: the state of the job is unknown, and nothing may be concluded from it. */
  | { kind: 'unreadable'; error: string }
  | PresentJob;

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

/** Result of the create call in this round. */
export type CreateOutcome =
  | { kind: 'accepted'; arn: string }
  /** Timeout, connection reset or 5xx: the job may exist. */
  | { kind: 'doubtful'; error: string }
  /** The name is already taken, perhaps by our own earlier call. */
  | { kind: 'exists'; error: string }
  | { kind: 'throttled'; error: string }
  /** ResourceLimitExceeded: a quota is used up. */
  | { kind: 'limit'; error: string }
  | { kind: 'refused'; failureClass: 'access' | 'config'; error: string };

/** The latest heartbeat of the driver; times in epoch milliseconds according to its own clock. */
export interface Heartbeat {
  attempt: number;
  step: number | null;
  phase: string;
  /** When the object was last written, by S3's clock. */
  writtenAt: EpochMs;
  vitals?: Vitals;
  /** Most recent starts of the ranks; absent in heartbeats of older drivers. */
  starts?: StartTimes[];
}

/** The complete checkpoints, or a marker that they could not be listed or were not requested. */
export type CheckpointObservation =
  | { kind: 'not-asked' }
  | { kind: 'unreadable'; error: string }
  | {
      kind: 'listed';
      /** Complete checkpoints (COMMITTED.json exists, and every object has the size that it lists), newest first. */
      committed: Checkpoint[];
      /** Checkpoints that have a COMMITTED.json but are incomplete. */
      torn: { uri: string; why: string }[];
      /** When any object of the run was last written, by S3's clock: a sign of life when the heartbeat cannot be read. */
      newestWriteAt?: EpochMs;
      /** When each checkpoint's marker was written, by its URI. */
      committedAt?: Readonly<Record<string, EpochMs>>;
    };

/** Everything that may influence a decision on a run. */
export interface Observed {
  job: JobObservation;
  /** What Describe returned for the last job, when it is not yet known how long its warm pool was kept. @default - not requested */
  lastJob?: JobObservation;
  /** The same for earlier attempts, by their number. @default - not requested */
  earlierJobs?: Readonly<Record<number, JobObservation>>;
  create?: CreateOutcome;
  /** Undefined when there is none, and when it could not be read; `heartbeatError` distinguishes the two. */
  heartbeat?: Heartbeat;
  /** Why the heartbeat could not be read. */
  heartbeatError?: string;
  checkpoints: CheckpointObservation;
  /** Where the run's current job writes, according to its descriptor; undefined when it was not read. */
  files?: JobFiles;
  /**
   * Where the first attempt starts when `checkpoints.startFrom` is set; `missing` says why there is nothing to start from, `unreadable` why
   * it could not be determined.
   */
  startFrom?: Checkpoint | { missing: string } | { unreadable: string };
  /** Ids of the rungs that the memory check rejects. */
  rungsThatDoNotFit: string[];
  /** Ids of the rungs that need more than the applied quota. @default none */
  rungsAboveQuota?: string[];
  /** What the service answered to the stop of this round: it was accepted, or the job is over already. @default - neither */
  stopAnswer?: 'accepted' | 'over';
  /** Ids of notices that were published in this round. */
  published: string[];
}

/** An observation in which nothing was requested. */
export const NOTHING_OBSERVED: Observed = {
  job: { kind: 'not-asked' },
  checkpoints: { kind: 'not-asked' },
  rungsThatDoNotFit: [],
  published: [],
};
