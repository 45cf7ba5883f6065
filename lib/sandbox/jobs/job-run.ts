import type { FaultPlan } from '../faults/fault-plan';
import type { TrainingJob } from '../sagemaker/training-job';
import { logError } from '../wire/api-call';
import type { Attempt, JobHost } from './attempt';
import { acquireCapacity, type Fleet } from './capacity';
import { type Cluster, clusterOptions } from './cluster';
import { FaultWatch } from './fault-watch';
import { downloadInputs, type InputSource } from './files/inputs';
import type { InstanceExit } from './instances/running-instance';
import { type Ending, holdState, RunControl } from './run-control';

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

/** What a running training job and a running processing job have in common. */
export abstract class JobRun<Job extends { name: string; region: string }> {
  readonly control = new RunControl();
  private watch?: FaultWatch;

  constructor(
    protected readonly job: Job,
    protected readonly services: JobServices<Job>,
  ) {}

  protected hold(state: Parameters<typeof holdState>[0], seconds: number): Promise<void> {
    return holdState(state, seconds, this.waits);
  }

  /** Waits until one of the clusters that the request accepts has capacity. */
  protected acquire(config: Parameters<typeof clusterOptions>[0], waiting = (_waits: boolean) => {}): Promise<Cluster> {
    return acquireCapacity(this.waits, clusterOptions(config), waiting);
  }

  /** Ends the job when a limit of its StoppingCondition is reached, of which a part has elapsed; undefined: no limit. */
  protected limit(kind: Ending['kind'], seconds: number | undefined, elapsedMs = 0): void {
    const { secondsPerLimitSecond } = this.services.time;
    this.control.endAfter(kind, seconds && seconds * 1000 * secondsPerLimitSecond - elapsedMs);
  }

  private get waits() {
    return { faults: this.services.faults, control: this.control, target: this.target };
  }

  protected download(inputs: readonly InputSource[], { s3, baseOf }: Attempt, cluster: Cluster): Promise<void> {
    const { region } = this.job;
    const { signal } = this.control;
    const fileSystems = this.services.host.fileSystemsFolder;
    return downloadInputs(inputs, { s3, region, cluster, baseOf, fileSystems, signal });
  }

  /** Waits until the instances have ended, and applies planned faults to them meanwhile. */
  protected async untilExit(fleet: Fleet): Promise<InstanceExit> {
    const { control, target } = this;
    const log = (message: string) => this.log(message);
    this.watch = new FaultWatch(this.services.faults, { target, fleet, control, log });
    try {
      return await control.race(fleet.decided);
    } finally {
      this.watch.stop();
    }
  }

  protected onLine(line: string): void {
    this.watch?.onLine(line);
  }

  private get target() {
    return { region: this.job.region, jobName: this.job.name };
  }

  protected log(message: string): void {
    logError(`job ${this.job.name}: ${message}`);
  }
}
