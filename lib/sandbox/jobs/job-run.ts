import { logError } from '../wire/api-call';
import type { Attempt } from './attempt';
import type { Fleet } from './capacity';
import type { Cluster } from './cluster';
import { FaultWatch } from './fault-watch';
import { downloadInputs, type InputSource } from './files/inputs';
import type { InstanceExit } from './instances/running-instance';
import type { JobServices } from './job-services';
import { holdState, RunControl } from './run-control';

/** What a running training job and a running processing job have in common. */
export abstract class JobRun<Job extends { name: string; region: string }> {
  readonly control = new RunControl();
  private watch?: FaultWatch;

  constructor(
    protected readonly job: Job,
    protected readonly services: JobServices<Job>,
  ) {}

  protected hold(state: Parameters<typeof holdState>[0], seconds: number): Promise<void> {
    const { control, target } = this;
    return holdState(state, seconds, { faults: this.services.faults, control, target });
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

  protected get target() {
    return { region: this.job.region, jobName: this.job.name };
  }

  protected log(message: string): void {
    logError(`job ${this.job.name}: ${message}`);
  }
}
