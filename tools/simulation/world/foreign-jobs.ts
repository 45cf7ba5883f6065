import { jobName } from '../../../lib/core/contracts/names';
import type { VirtualClock } from '../core/clock';
import type { Fleet } from '../job/fleet';
import type { JobRequest, Shape, SimJob } from '../job/job';
import { newJob, setForeign } from '../job/new-job';
import type { Scenario } from '../scenario/load';
import type { SimRun } from './sim-run';

/** What jobs of others need from the simulated SageMaker. */
export interface ForeignHooks {
  clock: VirtualClock;
  fleet: Fleet;
  runs: readonly SimRun[];
  adopt(job: SimJob): void;
  /** The state of the job changed. */
  onState(job: SimJob): void;
  onCapacity(): void;
}

type Foreign = NonNullable<Scenario['outside']>[number];

/** Jobs of others in the account: they use quota and are listed, and some have a name that an attempt will need. */
export class ForeignJobs {
  constructor(
    private readonly scenario: Scenario,
    private readonly hooks: ForeignHooks,
  ) {}

  plan(): void {
    const { clock } = this.hooks;
    const { scenario } = this;
    for (const [i, entry] of (scenario.outside ?? []).entries()) {
      const name = entry.name ?? `outside-${i + 1}-${entry.instanceType.replace(/\W/g, '-')}-${entry.instances}`;
      const { jobs = 1 } = entry;
      for (let job = 1; job <= jobs; job++) this.planForeign(jobs === 1 ? name : `${name}-${job}`, entry);
    }
    for (const { taken, at = 0, to } of scenario.faults ?? []) {
      if (taken === undefined) continue;
      clock.schedule(at * 1000, () => this.take(taken));
      if (to !== undefined) clock.schedule(to * 1000, () => this.giveBack(taken));
    }
  }

  private planForeign(name: string, { at = 0, to, instanceType, instances, spot = false }: Foreign): void {
    const { clock } = this.hooks;
    clock.schedule(at * 1000, () => {
      const job = this.addForeign(name, [{ instanceType, count: instances }], spot, 'InProgress');
      if (job) this.hooks.onState(job);
    });
    if (to !== undefined) clock.schedule(to * 1000, () => this.endForeign(name));
  }

  private addForeign(name: string, shapes: Shape[], spot: boolean, status: string): SimJob | undefined {
    if (this.hooks.fleet.jobs.has(name)) return undefined;
    const [shape] = shapes;
    const request: JobRequest = {
      TrainingJobName: name,
      ResourceConfig: {
        InstanceType: shape?.instanceType as NonNullable<JobRequest['ResourceConfig']>['InstanceType'],
        InstanceCount: shape?.count,
        VolumeSizeInGB: 100,
      },
      EnableManagedSpotTraining: spot,
    };
    const job = newJob(name, 'training', request, this.hooks.clock.now);
    job.held = shapes;
    job.chosen = shapes;
    job.startedAt = this.hooks.clock.now;
    this.hooks.adopt(job);
    setForeign(job, status, this.hooks.clock.now);
    this.hooks.onCapacity();
    return job;
  }

  private endForeign(name: string): void {
    const job = this.hooks.fleet.jobs.get(name);
    if (job) {
      setForeign(job, 'Completed', this.hooks.clock.now);
      this.hooks.onState(job);
    }
    this.hooks.onCapacity();
  }

  /** A job of another owner that ended long ago has the name of an attempt. */
  take(target: string): void {
    const name = this.nameOf(target);
    if (name) this.addForeign(name, [{ instanceType: 'ml.m5.large', count: 1 }], false, 'Completed');
  }

  private giveBack(target: string): void {
    const job = this.hooks.fleet.jobs.get(this.nameOf(target) ?? '');
    if (job && !job.truth) this.hooks.fleet.delete(job);
  }

  private nameOf(target: string): string | undefined {
    const [id, attempt] = target.split('#');
    const run = this.hooks.runs.find((one) => one.id === id);
    const isDeployed = (this.scenario.calls ?? []).some((call) => call.do === 'deploy' && call.run === id);
    const runId = run?.runId ?? (isDeployed ? undefined : run?.plannedId);
    return runId && jobName(this.scenario.environment.name, runId, Number(attempt));
  }
}
