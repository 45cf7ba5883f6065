import { findCapacityOption } from '../../../lib/core/lifecycle/capacity-options';
import { TICK_MS } from '../../../lib/core/lifecycle/health/observation-schedule';
import { HALF_LIFE_MS } from '../../../lib/core/queue/order';
import { isLive, type SimJob } from '../job/job';
import type { Item } from '../services/expression';
import { poolsOf } from '../services/limits';
import type { Message } from '../services/queue';
import { poolOfJob } from '../services/usage';
import type { SimRun } from '../world/sim-run';
import { Invariant, span } from './invariant';

const HOUR_MS = 3_600_000;
/** Services without which no run can start. */
const NEEDS = ['dynamodb', 'sqs', 'ssm', 's3:PutObject', 'sagemaker:CreateTrainingJob'];
/**
 * `one-live-job` and `work-kept` forbid a resume while the end of the last job or the newest commit cannot be observed; capacity that a job
 * has left, or did not choose, is free only once that has been observed.
 */
const RESUME_NEEDS = ['sagemaker:DescribeTrainingJob', 's3:ListObjectsV2', 's3:GetObject'];
const resumes = ({ jobs, truth, record }: SimRun): boolean =>
  // A create call without an answer may have made a job: its commits would show it.
  jobs.length > 0 || record?.attempt?.lastCreateAt !== undefined || truth?.spec.checkpoints.startFrom !== undefined;

/** No run waits an hour while every pool that it needs has capacity and no run that has waited longer could use that capacity. */
export class Backfill extends Invariant {
  readonly name = 'backfill';
  private readonly since = new Map<SimRun, number>();
  private readonly refusedAt = new Map<string, number>();

  constructor(private readonly fair: Fair) {
    super();
  }

  override onRefused(jobName: string): void {
    this.refusedAt.set(jobName, this.now);
  }

  override onCheck(): void {
    const { waiting, world, troubles } = this.scene;
    const list = waiting.list();
    const calmOf = { first: troubles.calmSince(NEEDS), resume: troubles.calmSince([...NEEDS, ...RESUME_NEEDS]) };
    for (const run of world.runs) {
      const isKnown = !this.isUnreadable(run) && !this.isChoiceUnknown();
      const may = waiting.freeSinceOf(run) !== undefined && !this.isRefused(run) && isKnown;
      if (!may || list.some((other) => this.goesFirst(other, run) || this.fair.mayFavour(run, other))) {
        this.since.delete(run);
        continue;
      }
      const calm = calmOf[resumes(run) || waiting.hasUnseenCapacity(run) ? 'resume' : 'first'];
      const since = Math.max(this.since.get(run) ?? this.now, calm);
      this.since.set(run, since);
      if (this.now - since <= HOUR_MS + TICK_MS) continue;
      this.break(`run ${run.id} has waited ${span(this.now - since)} with room in every pool: ${run.record?.reason}`);
    }
  }

  /** Its item cannot be read, or that of a run for which it waits: whether that one has completed is then not known. */
  private isUnreadable(run: SimRun): boolean {
    const isAwaited = ({ runId, truth }: SimRun) =>
      run.record?.after.some((wanted) => wanted === runId || wanted === `latest:${truth?.spec.name}`);
    return this.scene.world.runs.some(
      (other) => (other === run || isAwaited(other)) && this.isPoisoned(other, HOUR_MS),
    );
  }

  /** Which of several instance types the service chose for a job that has never been described: it keeps capacity of each. */
  private isChoiceUnknown(): boolean {
    return this.scene.world.runs.some(({ record }) => {
      const { attempt } = record ?? {};
      if (!record || attempt?.undescribedSince === undefined || attempt.selected !== undefined) return false;
      return (findCapacityOption(record, attempt.capacityOptionId)?.alternatives ?? []).length > 0;
    });
  }

  /** The service refused its create call within the longest backoff. */
  private isRefused(run: SimRun): boolean {
    const name = run.record?.attempt?.jobName;
    return name !== undefined && this.now - (this.refusedAt.get(name) ?? Number.NEGATIVE_INFINITY) < HOUR_MS;
  }

  /** Whether an older run could use the capacity: it fits, or it lacks a pool that both need and that is reserved for it. */
  private goesFirst(other: SimRun, run: SimRun): boolean {
    const { waiting } = this.scene;
    if (other === run || !waiting.isReady(other) || waiting.place(other) > waiting.place(run)) return false;
    const needs = waiting.needsOf(run);
    const shared = [...waiting.needsOf(other)].filter(([pool]) => needs.has(pool));
    if (shared.length === 0) return false;
    if (waiting.fits(other)) return true;
    return shared.some(([pool, needed]) => needed > waiting.free(pool, other) && needed <= waiting.limitOf(pool));
  }
}

/** The functions never exceed a service's rate limits in a way that delays a decision by more than two ticks. */
export class Rates extends Invariant {
  readonly name = 'rates';

  override onMessageOver(message: Message, isDead: boolean): void {
    const late = this.now - message.sentAt;
    if (message.throttledCalls === 0 || (late <= 2 * TICK_MS && !isDead)) return;
    // Faults also cause messages to be repeated, so affected messages are not evidence about rates.
    if (this.scene.troubles.lastFaultAt >= message.sentAt) return;
    const end = isDead ? 'went to the dead letters' : `took ${span(late)}`;
    this.break(`${message.body} ${end} after ${message.throttledCalls} calls were refused as too many`);
  }
}

/** A team within this fraction of its entitlement counts as neither above nor below. */
const MARGIN = 0.1;

/** The instances of one job, as they count against its team. */
interface Holding {
  team: string;
  pools: ReadonlyMap<string, number>;
}

/** No start favours a team above its entitlement while a startable run of a team below its entitlement waits. */
export class Fair extends Invariant {
  readonly name = 'fair';
  /** Decayed instance-time by team and quota, computed from what jobs really held. */
  private readonly used = new Map<string, Map<string, number>>();
  private usedAt = 0;
  private readonly queued = new Set<SimRun>();
  /** Instances that jobs hold now, by team and quota, and the contribution of each job. */
  private readonly held = new Map<string, Map<string, number>>();
  private readonly holdings = new Map<SimJob, Holding>();

  override onRunWritten(run: SimRun, _before: Item | undefined, item: Item): void {
    if (item.state?.S === 'queued') this.queued.add(run);
  }

  override onJobChange(run: SimRun | undefined, job: SimJob): void {
    this.count();
    const before = this.holdings.get(job);
    if (before) this.hold(before, -1);
    this.holdings.delete(job);
    if (!run || !job.held || !isLive(job)) return;
    const now = { team: run.team, pools: poolsOf(job.held, poolOfJob(job)) };
    this.holdings.set(job, now);
    this.hold(now, 1);
  }

  override onCheck(): void {
    this.count();
  }

  private hold({ team, pools }: Holding, sign: 1 | -1): void {
    const held = this.held.get(team) ?? new Map<string, number>();
    this.held.set(team, held);
    for (const [quota, count] of pools) held.set(quota, (held.get(quota) ?? 0) + sign * count);
  }

  override onCreate(run: SimRun | undefined): void {
    if (!run || !this.queued.delete(run)) return;
    this.count();
    const { waiting } = this.scene;
    // Capacity that the run has reserved for itself is not available to others.
    if (waiting.isKeeping(run)) return;
    const takes = waiting.needsOf(run);
    const demanding = new Set([...this.used.keys(), ...waiting.list().map(({ team }) => team), run.team]);
    const entitlement = (team: string) => this.entitlementOf(team, demanding);
    const usage = (team: string) => this.usageOf(team);
    if (usage(run.team) <= entitlement(run.team) * (1 + MARGIN)) return;
    const favoured = waiting.list().find((other) => {
      // A run that the queue has admitted waits only for its create call.
      if (other === run || other.team === run.team || other.record?.admitted || !this.hasStoodReady(other))
        return false;
      const isBelow = usage(other.team) < entitlement(other.team) * (1 - MARGIN);
      return isBelow && waiting.fits(other) && !waiting.fits(other, takes) && !this.isKeptFrom(other);
    });
    if (!favoured) return;
    const hours = (team: string) =>
      `${team} ${Math.round((10 * usage(team)) / HOUR_MS) / 10} of ${Math.round((10 * entitlement(team)) / HOUR_MS) / 10}`;
    this.break(
      `run ${run.id} started while ${favoured.id} waited and could have (${favoured.record?.reason}); hours of a whole pool, of their entitlement: ${hours(run.team)}, ${hours(favoured.team)}`,
    );
  }

  /**
   * A run that joined earlier has waited for an hour and lacks capacity in a pool that both need, so the pool is reserved for it
   * (docs/queue.md).
   */
  private isKeptFrom(run: SimRun): boolean {
    const { waiting } = this.scene;
    const needs = waiting.needsOf(run);
    return waiting.list().some((older) => {
      const isOlder = older !== run && waiting.isReady(older) && waiting.place(older) <= waiting.place(run);
      if (!isOlder || this.now - waiting.since(older) < HOUR_MS) return false;
      return [...waiting.needsOf(older)].some(
        ([pool, needed]) => needs.has(pool) && needed > waiting.free(pool, older) && needed <= waiting.limitOf(pool),
      );
    });
  }

  /** Whether starting `run` might be unfair to `other`, allowing for differences in rounding. */
  mayFavour(run: SimRun, other: SimRun): boolean {
    const { waiting } = this.scene;
    if (other.team === run.team || !waiting.isReady(other) || !waiting.fits(other)) return false;
    const pools = waiting.needsOf(run);
    if (![...waiting.needsOf(other).keys()].some((pool) => pools.has(pool))) return false;
    this.count();
    const demanding = new Set([...this.used.keys(), ...waiting.list().map(({ team }) => team)]);
    const usage = (team: string) => this.usageOf(team);
    const isAbove = usage(run.team) > this.entitlementOf(run.team, demanding) * (1 - MARGIN);
    return isAbove && usage(other.team) < this.entitlementOf(other.team, demanding) * (1 + MARGIN);
  }

  private hasStoodReady(run: SimRun): boolean {
    const { troubles, waiting } = this.scene;
    const since = waiting.freeSinceOf(run);
    if (since === undefined || this.now - since < TICK_MS) return false;
    return troubles.calmSince(RESUME_NEEDS) <= this.now || !waiting.hasUnseenCapacity(run);
  }

  private entitlementOf(team: string, demanding: ReadonlySet<string>): number {
    const { teams } = this.scene.world.scenario.environment;
    const share = (name: string) => teams[name]?.share ?? 1;
    const all = [...demanding].reduce((sum, name) => sum + share(name), 0);
    const total = [...this.used.keys()].reduce((sum, name) => sum + this.usageOf(name), 0);
    return (total * share(team)) / all;
  }

  /** Its dominant share: the quota of whose limit it used the largest part, in milliseconds of the whole quota. */
  private usageOf(team: string): number {
    const { limits } = this.scene.world;
    const shares = [...(this.used.get(team) ?? [])].map(([quota, ms]) => ms / Math.max(1, limits.of(quota, this.now)));
    return Math.max(0, ...shares);
  }

  /** Updates the decaying sum of instance-time to now, with the instances held since the last change of a job. */
  private count(): void {
    const ms = this.now - this.usedAt;
    if (ms <= 0) return;
    const kept = 0.5 ** (ms / HALF_LIFE_MS);
    for (const used of this.used.values()) for (const [quota, had] of used) used.set(quota, had * kept);
    for (const [team, held] of this.held) {
      const used = this.used.get(team) ?? new Map<string, number>();
      this.used.set(team, used);
      for (const [quota, count] of held) used.set(quota, (used.get(quota) ?? 0) + ms * count);
    }
    this.usedAt = this.now;
  }
}
