import type { SimJob } from './job';

/** What happens to jobs, told at the moment when it does. */
export interface FleetHooks {
  /** Status or secondary status is another one. */
  onChange(job: SimJob): void;
  /** Instances were taken or given back, or a job came or went: others may find room. */
  onRoom(): void;
  /** Share of the price of on-demand capacity that a second of this job costs. */
  billedShare(job: SimJob): number;
  /** Instances of a type that warm pools may hold now. */
  warmPoolLimit(instanceType: string): number;
  /** A start of the job begins its steps here; undefined = the checkpoint that it loads cannot be read. */
  onResume(job: SimJob, step: number): void;
}
