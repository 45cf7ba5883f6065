import type { Checkpoint, EpochMs, JobFiles, Pauses, StartTimes, Vitals } from './record';

/** What Describe said about the job of the current attempt. */
export type JobObservation =
  | { kind: 'not-asked' }
  | { kind: 'absent' }
  /** Describe failed: nothing is known, and nothing may be concluded. */
  | { kind: 'unreadable'; error: string }
  | PresentJob;

/** A job as Describe answered; times in epoch milliseconds. */
export interface PresentJob {
  kind: 'present';
  arn: string;
  /** InProgress, Stopping, Completed, Failed, Stopped, Deleting. */
  status: string;
  secondaryStatus: string;
  failureReason: string;
  /** By the service's clock. */
  createdAt: EpochMs;
  trainingStartedAt?: EpochMs;
  /** Start of its newest time in Training; later than `trainingStartedAt` after an interruption. */
  trainingSince?: EpochMs;
  /** When it was without instances after it had had them. */
  pauses?: Pauses;
  /** Which of the preferred instance types the service chose. */
  selected?: { instanceType: string; instanceCount: number };
  endedAt?: EpochMs;
  /** Per instance; of spot, what is left of the time after the discount. */
  billableSeconds?: number;
  /** The service keeps its instances; `retainedSeconds` once it keeps them no more. */
  warmPool?: { isKept: boolean; retainedSeconds: number };
  /** Last value of the metric `slipway:step`. */
  lastStep?: number;
  /** Whether it is the job of this run and this attempt. `unread` = neither the job itself nor its tags say so. */
  identity: 'ours' | 'foreign' | 'unread';
}

/** What came back from the create call of this round. */
export type CreateOutcome =
  | { kind: 'accepted'; arn: string }
  /** Timeout, connection reset, 5xx: the job may exist. */
  | { kind: 'doubtful'; error: string }
  /** The name is taken, perhaps by our own earlier call. */
  | { kind: 'exists'; error: string }
  | { kind: 'throttled'; error: string }
  /** ResourceLimitExceeded: quota. */
  | { kind: 'limit'; error: string }
  | { kind: 'refused'; failureClass: 'access' | 'config'; error: string };

/** What the driver wrote of itself last; times in epoch milliseconds by its own clock. */
export interface Heartbeat {
  attempt: number;
  step: number | null;
  phase: string;
  /** When the object was last written, by S3's clock. */
  writtenAt: EpochMs;
  vitals?: Vitals;
  /** Newest starts of the ranks; absent in heartbeats of older drivers. */
  starts?: StartTimes[];
}

/** Complete checkpoints, or that they could not be listed or were not asked for. */
export type CheckpointObservation =
  | { kind: 'not-asked' }
  | { kind: 'unreadable'; error: string }
  | {
      kind: 'listed';
      /** Complete ones (COMMITTED.json there, every object there with its size), newest first. */
      committed: Checkpoint[];
      /** Have a COMMITTED.json but are not whole. */
      torn: { uri: string; why: string }[];
      /** When any object of the run was last written, by S3's clock: a sign of life where the heartbeat cannot be read. */
      newestWriteAt?: EpochMs;
      /** When each checkpoint's marker was written, by its URI. */
      committedAt?: Readonly<Record<string, EpochMs>>;
    };

/** Everything that a decision on a run may turn on. */
export interface Observed {
  job: JobObservation;
  /** What Describe said about the last job, where it is open how long its warm pool was kept. @default - it was not asked */
  lastJob?: JobObservation;
  create?: CreateOutcome;
  /** Undefined when there is none, and when it could not be read: the next field tells the two apart. */
  heartbeat?: Heartbeat;
  /** Why the heartbeat could not be read. */
  heartbeatError?: string;
  checkpoints: CheckpointObservation;
  /** Where the run's present job writes, by the descriptor of the day; undefined where that was not asked. */
  files?: JobFiles;
  /** Where the first attempt begins, when `checkpoints.startFrom` is given; `missing` says why there is nothing to begin from, `unreadable` why nobody knows. */
  startFrom?: Checkpoint | { missing: string } | { unreadable: string };
  /** Rungs that the memory check refuses, by id. */
  rungsThatDoNotFit: string[];
  /** Rungs whose needs are above the applied quota, by id. @default none */
  rungsAboveQuota?: string[];
  /** Ids of notices that were published in this round. */
  published: string[];
}

/** An observation in which nothing was asked. */
export const NOTHING_OBSERVED: Observed = {
  job: { kind: 'not-asked' },
  checkpoints: { kind: 'not-asked' },
  rungsThatDoNotFit: [],
  published: [],
};
