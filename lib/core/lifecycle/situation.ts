import type { Observed } from './observed';
import type { Attempt, EpochMs, PresentJob, RunRecord } from './record';

/** The input of a decision on the live attempt of a run. */
export interface Situation {
  record: RunRecord;
  attempt: Attempt;
  observed: Observed;
  now: EpochMs;
}

/** A situation in which the job of the attempt was found. */
export interface JobSituation extends Situation {
  job: PresentJob;
}

/** Changes of a run whose attempt has ended. */
export type EndedRecord = Partial<RunRecord> & { attempt: Attempt };
