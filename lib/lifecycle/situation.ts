import type { Observed, PresentJob } from './observed';
import type { Attempt, EpochMs, RunRecord } from './record';

/** What a decision on the live attempt of a run is made from. */
export interface Situation {
  record: RunRecord;
  attempt: Attempt;
  observed: Observed;
  now: EpochMs;
}

/** The job of the attempt was described. */
export interface JobSituation extends Situation {
  job: PresentJob;
}

/** Changes of a run whose attempt has ended. */
export type EndedRecord = Partial<RunRecord> & { attempt: Attempt };
