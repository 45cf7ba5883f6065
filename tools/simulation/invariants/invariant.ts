import type { SimMs } from '../core/clock';
import type { SimJob } from '../job/job';
import type { InvariantResult } from '../result';
import type { SimRun } from '../world/sim-run';
import { Watch } from '../world/watch';
import type { World } from '../world/world';
import type { Troubles } from './troubles';
import type { WaitingRuns } from './waiting-runs';

/** What the service did to a job within this time before the end, including its start and end, may not have been observed yet. */
export const UNSEEN_MS = 660_000;

/** The service's times have whole seconds, and each of two may be rounded. */
export const ROUNDED_MS = 2000;
/** How far a cost or a time may be off, as a fraction of it. */
export const SHARE_TOLERANCE = 0.01;

/** The objects that all invariants observe. */
export interface Scene {
  world: World;
  waiting: WaitingRuns;
  troubles: Troubles;
}

/** A property of the control plane that must hold in every scenario. Stores the time and the evidence of the first violation. */
export abstract class Invariant extends Watch<World> {
  abstract readonly name: string;
  protected scene!: Scene;
  private broken: { at: SimMs; evidence: string } | undefined;

  enter(scene: Scene): void {
    this.scene = scene;
  }

  /** Called once between two ticks. */
  onCheck(): void {}

  /** Called at the end of the scenario. */
  onEnd(): void {}

  get now(): SimMs {
    return this.scene.world.clock.now;
  }

  get verdict(): InvariantResult {
    if (!this.broken) return { name: this.name, holds: true };
    return { name: this.name, holds: false, at: Math.round(this.broken.at) / 1000, evidence: this.broken.evidence };
  }

  /** The scenario's faults of calls of this service or operation that overlap a period. */
  protected callFaults(name: string, from: SimMs, until: SimMs) {
    return (this.scene.world.scenario.faults ?? []).filter(
      ({ call, at = 0, to = Number.POSITIVE_INFINITY }) =>
        call?.startsWith(name) && at * 1000 <= until && to * 1000 >= from,
    );
  }

  /** The faults because of which the code of a job writes something else in place of its heartbeats. */
  protected heartbeatFaults({ id, jobs }: SimRun, job: SimJob) {
    const name = `${id}#${jobs.indexOf(job) + 1}`;
    return (this.scene.world.scenario.faults ?? []).filter(({ job: of, beats }) => of === name && beats !== undefined);
  }

  /** Whether the item of the run cannot be read at a time, or could not until `ms` before it: then nothing can be done about the run. */
  protected isPoisoned({ id }: SimRun, ms = 0, when = this.now): boolean {
    return (this.scene.world.scenario.faults ?? []).some(
      ({ stored, poison, at = 0, to = Number.POSITIVE_INFINITY }) =>
        stored === id && poison !== undefined && at * 1000 <= when && to * 1000 >= when - ms,
    );
  }

  protected break(evidence: string, at = this.now): void {
    this.broken ??= { at, evidence };
  }
}

/** Whether the name of a deleted job was used again, for the same attempt: Slipway never observed the job. */
export const isReplaced = (run: SimRun, job: SimJob): boolean =>
  run.jobs.findLast(({ name }) => name === job.name) !== job;

/** Formats a duration for the evidence. */
export const span = (ms: number): string => {
  const minutes = ms / 60_000;
  return minutes < 120 ? `${Math.round(minutes)} min` : `${Math.round(minutes / 6) / 10} h`;
};
