import type { FaultPlan } from '../faults/fault-plan';
import type { TrainingJob } from '../sagemaker/training-job';
import type { JobHost } from './attempt';

/** How fast the sandbox's clock runs where the real service makes callers wait. */
export interface TimeScale {
  /** Minimum seconds that a job stays in Starting and in Downloading, which take minutes on SageMaker. */
  startingSeconds: number;
  downloadingSeconds: number;
  /** Seconds between SIGTERM and SIGKILL. SageMaker: 120. */
  stopGraceSeconds: number;
  /** Wall-clock seconds per second of MaxRuntime, MaxWait, MaxPending and KeepAlive: 1 is real time. */
  secondsPerLimitSecond: number;
}

/** Default durations of SageMaker's states in a sandbox. */
export const DEFAULT_TIME_SCALE: TimeScale = {
  startingSeconds: 0.3,
  downloadingSeconds: 0.1,
  stopGraceSeconds: 120,
  secondsPerLimitSecond: 1,
};

/** What running a job needs besides the job itself. */
export interface JobServices<T> {
  host: JobHost;
  faults: FaultPlan;
  time: TimeScale;
  changed: (job: T) => void;
}

export type RunServices = JobServices<TrainingJob>;
