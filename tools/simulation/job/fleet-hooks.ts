import type { SimJob } from './job';

/** Callbacks for events of jobs, called at the moment of the event. */
export interface FleetHooks {
  /** Status or secondary status has changed. */
  onChange(job: SimJob): void;
  /** Instances were allocated or released, or a job was created or ended: other jobs may find capacity. */
  onCapacity(): void;
  /** Share of the on-demand price that is billed for the time of this job. */
  billedShare(job: SimJob): number;
  /** Number of instances of a type that warm pools may hold now. */
  warmPoolLimit(instanceType: string): number;
  /** A start of the job begins its steps at this step; undefined = its checkpoint cannot be read. */
  onResume(job: SimJob, step: number): void;
}
