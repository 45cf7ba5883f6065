import type { Attempt, Checkpoint, EpochMs, JobFiles, PresentJob, RunRecord, StartTimes, Vitals } from './record';

/** What DescribeTrainingJob returned for the job of the current attempt. */
export type JobObservation =
  | { kind: 'not-asked' }
  | { kind: 'absent' }
  /** Describe failed: the state of the job is unknown, and nothing may be concluded from it. */
  | { kind: 'unreadable'; error: string }
  | PresentJob;

export type CreateOutcome =
  | { kind: 'accepted'; arn: string }
  /**
   * `not-attempted`: something that the call needs could not be read or written, so that no job comes from this round. `doubtful`: after a
   * timeout, a connection reset or 5xx the job may exist. `exists`: the name is taken, perhaps by our own earlier call. `limit`: a quota is
   * used up.
   */
  | { kind: 'not-attempted' | 'doubtful' | 'exists' | 'throttled' | 'limit'; error: string }
  | { kind: 'refused'; failureClass: 'access' | 'config'; error: string };

/** The latest heartbeat of the driver; times in epoch milliseconds according to its own clock. */
export interface Heartbeat {
  attempt: number;
  step: number | null;
  phase: string;
  /** When the object was last written, by S3's clock. */
  writtenAt: EpochMs;
  /** When its driver began, by S3's clock; absent in heartbeats of older drivers. */
  beganAt?: EpochMs;
  /** Counts that are missing or malformed in it are absent, and replace nothing that is known. */
  vitals?: Omit<Vitals, 'restarts'> & { restarts?: number };
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
  /** When a heartbeat whose content cannot be read was last written, by S3's clock; undefined when that is not known. */
  unreadHeartbeatAt?: EpochMs;
  checkpoints: CheckpointObservation;
  /** Where the run's current job writes, according to its descriptor; undefined when it was not read. */
  files?: JobFiles;
  /**
   * Where the first attempt starts when `checkpoints.startFrom` is set; `missing` says why there is nothing to start from, `unreadable` why
   * it could not be determined.
   */
  startFrom?: Checkpoint | { missing: string } | { unreadable: string };
  /** Ids of the capacity options that the memory check rejects. */
  optionsThatDoNotFit: string[];
  /** Ids of the capacity options that need more than the applied quota. @default none */
  optionsAboveQuota?: string[];
  /** What the service answered to the stop of this round: it was accepted, or the job is over already. @default - neither */
  stopAnswer?: 'accepted' | 'over';
  /** Ids of notices that were published in this round. */
  published: string[];
}

/** An observation in which nothing was requested. */
export const NOTHING_OBSERVED: Observed = {
  job: { kind: 'not-asked' },
  checkpoints: { kind: 'not-asked' },
  optionsThatDoNotFit: [],
  published: [],
};

/** The input of a decision on the live attempt of a run. */
export interface Situation {
  record: RunRecord;
  attempt: Attempt;
  observed: Observed;
  now: EpochMs;
}

export interface JobSituation extends Situation {
  job: PresentJob;
}

/** Changes of a run whose attempt has ended. */
export type EndedRecord = Partial<RunRecord> & { attempt: Attempt };
