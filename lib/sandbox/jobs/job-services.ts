import type { FaultPlan } from '../faults/fault-plan';
import type { TrainingJob } from '../sagemaker/training-job';
import type { TimeScale } from '../time-scale';
import type { JobHost } from './attempt';
import type { Command } from './instances/container-command';

/** What running a job needs besides the job itself. */
export interface JobServices<T> {
  host: JobHost;
  faults: FaultPlan;
  time: TimeScale;
  /** Command of an image whose request has no ContainerEntrypoint. */
  imageCommand: (image: string) => Command | undefined;
  /** Called after every change of state. */
  changed: (job: T) => void;
}

/** The services of training jobs. */
export type RunServices = JobServices<TrainingJob>;
