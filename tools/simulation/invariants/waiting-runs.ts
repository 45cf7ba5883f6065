import { fitsMemory } from '../../../lib/core/admission';
import { hostCount, requestedAlternativesOf, requestedGroupsOf } from '../../../lib/core/config/resolve-run';
import { monthOf } from '../../../lib/core/lifecycle/accounting/month-spend';
import { runWithCapacityOption, sizesToAsk } from '../../../lib/core/lifecycle/capacity-options';
import type { SimMs } from '../core/clock';
import { EPOCH_MS } from '../core/epoch';
import { isLive, type Shape, shapeCount } from '../job/job';
import { poolsOf } from '../services/limits';
import type { SimRun } from '../world/sim-run';
import type { World } from '../world/world';

/** Name of the guardrail maxConcurrentInstances among the pools. */
const GUARDRAIL = 'guardrails.maxConcurrentInstances';
/** States in which the table counts a run's job. */
const HOLDING: ReadonlySet<string> = new Set(['submitting', 'pending', 'running', 'stopping']);
/** How long a run keeps its instances reserved between two attempts. */
const KEEPS_MS = 2 * 3_600_000;

/** State that holds until the next change. */
interface Snapshot {
  waiting: readonly SimRun[];
  ready: ReadonlySet<SimRun>;
  /** Runs between two attempts, which keep their instances reserved. */
  keeping: ReadonlySet<SimRun>;
  kept: ReadonlyMap<string, number>;
}

/** Runs that wait for a job, their needs, and since when there has been capacity for each. */
export class WaitingRuns {
  private readonly freeSince = new Map<SimRun, SimMs>();
  private readonly needs = new Map<string, ReadonlyMap<string, number>>();

  /** Whether each size fits into memory, by run and capacity option. */
  private readonly fitting = new Map<string, boolean>();
  private seen: Snapshot | undefined;
  private waiting: readonly SimRun[] = [];
  /** Places of the runs that waited at the last update. */
  private readonly places = new Map<SimRun, number>();
  /** Runs that may have started or stopped waiting since. */
  private readonly changed: Set<SimRun>;
  private instances: number | undefined;

  constructor(private readonly world: World) {
    this.changed = new Set(world.runs);
  }

  /** The run's item or one of its jobs changed: the next update evaluates it again. */
  note(run: SimRun | undefined): void {
    if (run) this.changed.add(run);
  }

  /** Runs that are started, confirmed, wanted, and without a live job. */
  list(): readonly SimRun[] {
    return this.snapshot.waiting;
  }

  /** The run lacks only capacity: the runs that it waits for are completed, and it is not in backoff. */
  isReady(run: SimRun): boolean {
    return this.snapshot.ready.has(run);
  }

  /** Whether its instances still count as used, because it is between two attempts. */
  isKeeping(run: SimRun): boolean {
    return this.snapshot.keeping.has(run);
  }

  /** Start of its wait: its last job ended, it was started, or it was resumed. */
  since(run: SimRun): SimMs {
    const last = run.jobs.at(-1);
    // A job may be deleted long after its end; the deletion of a live job also ends it.
    const ended = last?.history.at(-1)?.at ?? 0;
    const requested = run.requests.findLast(({ want }) => want === 'run')?.at ?? 0;
    return Math.max(run.startedAt ?? 0, ended, requested, run.mayStartAt);
  }

  /** Its place in the queue: the start of its wait or, for a preempted run, the time when it first joined. */
  place(run: SimRun): SimMs {
    const { record } = run;
    const isBack = record?.preemptedAt !== undefined && !record.admitted && record.queuedAt !== undefined;
    return isBack ? (record.queuedAt ?? 0) - EPOCH_MS : this.since(run);
  }

  /** Since when every pool that the run needs has had capacity; undefined while one has none. */
  freeSinceOf(run: SimRun): SimMs | undefined {
    return this.freeSince.get(run);
  }

  /**
   * Whether the table counts instances in a pool which this run needs that another run does not have any more, or never had: the end of its
   * job, or which of its clusters the service chose, has not been observed.
   */
  hasUnseenCapacity(run: SimRun): boolean {
    const needs = this.needsOf(run);
    return this.world.runs.some(
      (other) =>
        other !== run &&
        HOLDING.has(other.state) &&
        (hasUnreadEnd(other) || hasUnreadChoice(other)) &&
        [...this.needsOf(other).keys()].some((pool) => needs.has(pool)),
    );
  }

  /** Something has changed: earlier results are invalid. */
  update(): void {
    this.seen = undefined;
    this.instances = undefined;
    const { ready } = this.snapshot;
    for (const run of this.freeSince.keys()) if (!ready.has(run)) this.freeSince.delete(run);
    for (const run of ready) {
      if (!this.fits(run)) this.freeSince.delete(run);
      else if (!this.freeSince.has(run)) this.freeSince.set(run, this.world.clock.now);
    }
  }

  /** @param taken instances to count in addition to those that jobs hold now, by pool */
  fits(run: SimRun, taken?: ReadonlyMap<string, number>): boolean {
    for (const [pool, needed] of this.needsOf(run)) {
      if (needed > this.free(pool, run) - (taken?.get(pool) ?? 0)) return false;
    }
    return true;
  }

  /** Instances that it requests, by pool. Each instance type that it may get counts. */
  needsOf(run: SimRun): ReadonlyMap<string, number> {
    const option = this.optionOf(run);
    const key = `${run.id}/${option}`;
    const known = this.needs.get(key);
    if (known) return known;
    const needs = this.countNeeds(run, option);
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
    const { kept } = this.snapshot;
    const limit = this.limitOf(pool);
    if (limit === Number.POSITIVE_INFINITY) return limit;
    const own = this.snapshot.keeping.has(asking) ? (this.needsOf(asking).get(pool) ?? 0) : 0;
    const used = pool === GUARDRAIL ? this.instancesOfRuns() : this.world.usage.of(pool);
    return limit - used - (kept.get(pool) ?? 0) + own;
  }

  private get snapshot(): Snapshot {
    this.seen ??= this.observe();
    return this.seen;
  }

  private observe(): Snapshot {
    const { clock } = this.world;
    const waiting = this.findWaiting();
    const between = waiting.filter(
      (run) => run.record?.admitted === true && clock.now - Math.max(this.since(run), run.stateSince) < KEEPS_MS,
    );
    const kept = new Map<string, number>();
    for (const run of between) {
      for (const [pool, count] of this.needsOf(run)) kept.set(pool, (kept.get(pool) ?? 0) + count);
    }
    return {
      waiting,
      ready: new Set(waiting.filter((run) => this.lacksOnlyCapacity(run))),
      keeping: new Set(between),
      kept,
    };
  }

  /** In the order of the scenario. Whether a run waits depends only on its item and its jobs. */
  private findWaiting(): readonly SimRun[] {
    const { runs } = this.world;
    let isSame = true;
    for (const run of this.changed) {
      const waits = this.isWaiting(run);
      if (waits !== this.places.has(run)) {
        isSame = false;
        if (waits) this.places.set(run, runs.indexOf(run));
        else this.places.delete(run);
      }
      // Control's answer to its start, which is not tied to any write, is still pending.
      if (run.startedAt !== undefined && run.truth) this.changed.delete(run);
    }
    if (!isSame) this.waiting = [...this.places].sort(([, a], [, b]) => a - b).map(([run]) => run);
    return this.waiting;
  }

  /** The requested capacity option: for an elastic run that the queue has not admitted, the smallest size that its model fits. */
  private optionOf(run: SimRun): string {
    const { record } = run;
    if (!record) return '';
    if (record.admitted) return record.capacityOptionId;
    return (
      sizesToAsk(record).findLast(({ id }) => id === record.capacityOptionId || this.hasMemory(run, id))?.id ??
      record.capacityOptionId
    );
  }

  private hasMemory({ id, truth }: SimRun, option: string): boolean {
    const key = `${id}/${option}`;
    const known = this.fitting.get(key);
    if (known !== undefined || !truth) return known ?? true;
    const fits = fitsMemory(runWithCapacityOption(truth.spec, option), this.world.scenario.environment.region);
    this.fitting.set(key, fits);
    return fits;
  }

  private isWaiting(run: SimRun): boolean {
    if (run.startedAt === undefined || run.isOver || !run.wantsToRun || !run.truth) return false;
    const last = run.jobs.at(-1);
    return !(last && isLive(last)) && run.record?.confirmed === true;
  }

  private lacksOnlyCapacity(run: SimRun): boolean {
    const { record } = run;
    const now = EPOCH_MS + this.world.clock.now + this.world.state.skewMs();
    return (
      record !== undefined &&
      (record.notBefore ?? 0) <= now &&
      record.after.every((wanted) => this.isCompleted(wanted, run)) &&
      (run.jobs.length > 0 || !this.maySpendNoMore(run.team))
    );
  }

  /** Whether the jobs that the team started in this month have cost its monthly budget, allowing for differences in rounding. */
  maySpendNoMore(team: string): boolean {
    const { clock, prices, runs, scenario } = this.world;
    const budget = scenario.environment.teams[team]?.budgetUsdPerMonth;
    if (budget === undefined) return false;
    const began = monthOf(EPOCH_MS + clock.now).start - EPOCH_MS;
    const jobs = runs
      .flatMap((run) => (run.team === team ? run.jobs : []))
      .filter(({ createdAt }) => createdAt >= began);
    return jobs.reduce((usd, job) => usd + prices.billedUsd(job, clock.now), 0) >= 0.98 * budget;
  }

  private countNeeds({ truth }: SimRun, option: string): Map<string, number> {
    if (!truth) return new Map();
    const { compute, kind } = runWithCapacityOption(truth.spec, option);
    const pool = kind === 'processing' ? 'processing' : compute.capacity === 'spot' ? 'spot' : 'training';
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
    this.instances ??= this.world.fleet
      .live()
      .reduce((sum, job) => sum + (job.truth ? shapeCount(job.chosen ?? job.wanted[0] ?? []) : 0), 0);
    return this.instances;
  }

  private isCompleted(wanted: string, waiter: SimRun): boolean {
    const name = wanted.startsWith('latest:') ? wanted.slice('latest:'.length) : undefined;
    return this.world.runs.some((run) =>
      name === undefined
        ? run.runId === wanted && run.state === 'completed'
        : run !== waiter && run.team === waiter.team && run.truth?.spec.name === name && run.state === 'completed',
    );
  }
}

const hasUnreadEnd = ({ jobs }: SimRun): boolean => jobs.length > 0 && !jobs.some(isLive);

const hasUnreadChoice = ({ jobs, record }: SimRun): boolean =>
  jobs.some((job) => isLive(job) && job.chosen !== undefined && job.wanted.length > 1) &&
  record?.attempt?.selected === undefined;
