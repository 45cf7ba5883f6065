import { ON_DEMAND } from '../../lifecycle/ladder';
import { hostCount, requestedAlternativesOf, requestedGroupsOf } from '../../spec/resolve-run';
import type { SimMs } from '../core/clock';
import { EPOCH_MS } from '../core/epoch';
import { isLive, type Shape } from '../job/job';
import { poolsOf } from '../services/limits';
import type { SimRun } from '../world/sim-run';
import type { World } from '../world/world';

/** The guardrail maxConcurrentInstances, among the pools. */
const GUARDRAIL = 'guardrails.maxConcurrentInstances';
/** A run between two attempts keeps its instances for itself this long. */
const KEEPS_MS = 2 * 3_600_000;

/** Runs that wait for a job, what each needs, and since when there has been room for it. */
export class WaitingRuns {
  private readonly roomSince = new Map<SimRun, SimMs>();
  private readonly needs = new Map<string, ReadonlyMap<string, number>>();

  constructor(private readonly world: World) {}

  /** Started, confirmed, wanted, and without a live job. */
  list(): SimRun[] {
    return this.world.runs.filter((run) => this.isWaiting(run));
  }

  isWaiting(run: SimRun): boolean {
    if (run.startedAt === undefined || run.isOver || !run.wantsToRun || !run.truth) return false;
    const last = run.jobs.at(-1);
    return !(last && isLive(last)) && run.record?.confirmed === true;
  }

  /** Nothing but room lacks: what it waits for is completed, and no back-off is on. */
  isReady(run: SimRun): boolean {
    const { record } = run;
    if (!record || !this.isWaiting(run)) return false;
    const now = EPOCH_MS + this.world.clock.now + this.world.state.skewMs();
    return (record.notBefore ?? 0) <= now && record.after.every((wanted) => this.isCompleted(wanted, run));
  }

  /** Since when it waits: its last job ended, it was started, or it was resumed. */
  since(run: SimRun): SimMs {
    const last = run.jobs.at(-1);
    const ended = last ? (last.deletedAt ?? last.history.at(-1)?.at ?? 0) : 0;
    return Math.max(run.startedAt ?? 0, ended, run.wishes.findLast(({ want }) => want === 'run')?.at ?? 0);
  }

  /** Since when every pool that the run needs has had room; undefined while one has not. */
  roomSinceOf(run: SimRun): SimMs | undefined {
    return this.roomSince.get(run);
  }

  /** Looks again: something came, went or changed. */
  update(): void {
    for (const run of this.world.runs) {
      if (this.isWaiting(run) && this.isReady(run) && this.fits(run)) {
        if (!this.roomSince.has(run)) this.roomSince.set(run, this.world.clock.now);
      } else this.roomSince.delete(run);
    }
  }

  /** @param taken what is taken beside what jobs hold now, by pool */
  fits(run: SimRun, taken?: ReadonlyMap<string, number>): boolean {
    return [...this.needsOf(run)].every(([pool, needed]) => needed <= this.free(pool, run) - (taken?.get(pool) ?? 0));
  }

  /** What it asks for, by pool. Each type that it may be given counts. */
  needsOf(run: SimRun): ReadonlyMap<string, number> {
    const rung = run.record?.rungId ?? '';
    const key = `${run.id}/${rung}`;
    const known = this.needs.get(key);
    if (known) return known;
    const needs = this.countNeeds(run, rung);
    this.needs.set(key, needs);
    return needs;
  }

  limitOf(pool: string): number {
    if (pool === GUARDRAIL) {
      return this.world.scenario.environment.guardrails.maxConcurrentInstances ?? Number.POSITIVE_INFINITY;
    }
    return this.world.limits.of(pool, this.world.clock.now);
  }

  free(pool: string, asking: SimRun): number {
    const { now } = this.world.clock;
    const between = this.world.runs.filter(
      (run) =>
        run !== asking &&
        run.record?.admitted === true &&
        this.isWaiting(run) &&
        (now - this.since(run) < KEEPS_MS || now - (run.stateSince ?? 0) < KEEPS_MS),
    );
    const kept = between.reduce((sum, run) => sum + (this.needsOf(run).get(pool) ?? 0), 0);
    const used = pool === GUARDRAIL ? this.instancesOfRuns() : this.world.usage.of(pool);
    return this.limitOf(pool) - used - kept;
  }

  private countNeeds({ truth }: SimRun, rung: string): Map<string, number> {
    if (!truth) return new Map();
    const { compute, kind } = truth.spec;
    const pool =
      kind === 'processing' ? 'processing' : compute.capacity === 'spot' && rung !== ON_DEMAND ? 'spot' : 'training';
    const shapeOf = (g: { instanceType: string; instanceCount: number }): Shape => ({
      instanceType: g.instanceType,
      count: g.instanceCount,
    });
    const clusters = [
      requestedGroupsOf(compute).map(shapeOf),
      ...requestedAlternativesOf(compute).map((a) => [shapeOf(a)]),
    ];
    const needs = new Map<string, number>([[GUARDRAIL, hostCount(requestedGroupsOf(compute))]]);
    for (const cluster of clusters) {
      for (const [name, count] of poolsOf(cluster, pool)) needs.set(name, Math.max(needs.get(name) ?? 0, count));
    }
    return needs;
  }

  private instancesOfRuns(): number {
    return this.world.fleet
      .live()
      .reduce((sum, job) => sum + (job.truth ? hostCount(requestedGroupsOf(job.truth.spec.compute)) : 0), 0);
  }

  private isCompleted(wanted: string, waiter: SimRun): boolean {
    const name = wanted.startsWith('latest:') ? wanted.slice('latest:'.length) : undefined;
    return this.world.runs.some((run) =>
      name === undefined
        ? run.runId === wanted && run.state === 'completed'
        : run !== waiter && run.truth?.spec.name === name && run.state === 'completed',
    );
  }
}
