/**
 * Number of instances that a run takes from each pool; the keys are quota codes, and `environment` for the guardrail
 * `maxConcurrentInstances`.
 */
export type PoolNeeds = Readonly<Record<string, number>>;

/** Pool of the environment's own limit on instances. */
export const ENVIRONMENT_POOL = 'environment';

export interface RunningRun {
  runId: string;
  team: string;
  /** Number of instances, for the team's share when its needs by pool are not known. */
  instances: number;
  needs: PoolNeeds;
}

export interface QueueSize {
  /** Id of one of the capacity options of the run. */
  capacityOptionId: string;
  instances: number;
  needs: PoolNeeds;
}

export interface QueuedRun extends RunningRun {
  priority: number;
  /** Smaller sizes that it also accepts, largest first. @default none */
  smaller?: readonly QueueSize[];
  /** Epoch milliseconds. */
  queuedAt: number;
  /** Start of the current wait, epoch milliseconds: a preempted run has trained since it first joined. @default `queuedAt` */
  waitingSince?: number;
  /** Run ids, or `latest:<run name>`, that must complete first and have not. */
  after: readonly string[];
  /** Why its team may not start new runs now. @default - it may */
  hold?: string;
  /** Earliest start, epoch milliseconds: the end of a backoff, or the requested start time. */
  notBefore?: number;
}

/** Start of a run's current wait, epoch milliseconds. */
export const waitsSince = ({ waitingSince, queuedAt }: QueuedRun): number => waitingSince ?? queuedAt;

/** Limit and use of a pool. `null` = not known: the service itself will refuse. */
export interface PoolLimit {
  limit: number | null;
  /** Used by jobs that are not ours. */
  usedByOthers: number;
  /** The limit or the use by others could not be read just now: no job is asked to exit for capacity that may not exist. @default false */
  isUnread?: boolean;
  /** Display name: `ml.p5.48xlarge for training job usage`. */
  name: string;
}

/** Half-life of past instance-hours, as with Slurm's PriorityDecayHalfLife. */
export const HALF_LIFE_MS = 24 * 3_600_000;

/** Numbers by team and pool. */
export type ByTeam = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Past use of the teams, stored between two passes of the queue. */
export interface QueueUsage {
  /** Time up to which it is counted, epoch milliseconds. */
  at: number;
  /** Decayed instance-hours. */
  hours: ByTeam;
  /** Instances held from that time on. */
  held: ByTeam;
}

export const NO_USAGE: QueueUsage = { at: 0, hours: {}, held: {} };

export function heldBy(running: readonly Pick<RunningRun, 'team' | 'instances' | 'needs'>[]): ByTeam {
  const held: Record<string, Record<string, number>> = {};
  for (const run of running) held[run.team] = addTo(held[run.team] ?? {}, poolsOf(run));
  return held;
}

/** Adds numbers by name to sums, which are changed and returned. */
function addTo(sums: Record<string, number>, more: Readonly<Record<string, number>> = {}, factor = 1) {
  for (const [name, value] of Object.entries(more)) sums[name] = (sums[name] ?? 0) + value * factor;
  return sums;
}

/** The pools of a run; a run whose needs are not known counts with its instances in one pool. */
export const poolsOf = ({
  needs,
  instances,
}: Pick<RunningRun, 'needs' | 'instances'>): Readonly<Record<string, number>> =>
  Object.keys(needs).length > 0 ? needs : { [ENVIRONMENT_POOL]: instances };

/**
 * Adds the use since the last pass until `now`, weighted by its decay, and stores what is held now. Exact if nothing changes between two
 * passes.
 */
export function advanceUsage(usage: QueueUsage, held: ByTeam, now: number): QueueUsage {
  const elapsed = Math.max(0, now - usage.at);
  const left = 0.5 ** (elapsed / HALF_LIFE_MS);
  // Integral of the decay weight since the last pass, in hours.
  const weightedHours = ((1 - left) * HALF_LIFE_MS) / Math.LN2 / 3_600_000;
  const hours: Record<string, Record<string, number>> = {};
  for (const team of new Set([...Object.keys(usage.hours), ...Object.keys(usage.held)])) {
    const counted = addTo(addTo({}, usage.hours[team], left), usage.held[team], weightedHours);
    // Teams whose use has decayed to seconds are removed, so that the item does not grow with every instance type that was ever used.
    hours[team] = Object.fromEntries(Object.entries(counted).filter(([, value]) => value > 0.001));
  }
  return { at: now, hours, held };
}

/**
 * Dominant share of each team: the pool of whose capacity it used the largest part, in hours of the whole pool. For a pool without a known
 * limit, the use of all teams counts as its capacity; the guardrail `maxConcurrentInstances` counts only where it is set, or when nothing
 * else is known.
 */
export function dominantHours(hours: ByTeam, pools: Readonly<Record<string, PoolLimit>>): Map<string, number> {
  const total: Record<string, number> = {};
  for (const used of Object.values(hours)) addTo(total, used);
  const capacity = (pool: string) => pools[pool]?.limit || total[pool] || 1;
  const counts = (pool: string, used: Readonly<Record<string, number>>) =>
    pool !== ENVIRONMENT_POOL || pools[pool]?.limit != null || Object.keys(used).length === 1;
  const shareOf = (used: Readonly<Record<string, number>>) =>
    Math.max(0, ...Object.entries(used).map(([pool, value]) => (counts(pool, used) ? value / capacity(pool) : 0)));
  return new Map(Object.entries(hours).map(([team, used]) => [team, shareOf(used)]));
}

/** For each such period that a run has waited, its priority within its team rises by one. */
const AGING_MS = 24 * 3_600_000;
/** Differences of this size are rounding errors and do not decide between teams. */
const SAME = 1e-9;

export interface TeamFacts {
  /** Queue shares by team; 1 where not named. */
  shares: Readonly<Record<string, number>>;
  /** Limits of the pools. @default none are known */
  pools?: Readonly<Record<string, PoolLimit>>;
  /** Past use of the teams. @default none */
  usage?: QueueUsage;
}

/**
 * The waiting runs in the order in which they may start, one at a time. Teams above their entitlement come after all other teams. Among the
 * rest, the team with the smallest dominant share (used and held instances, divided by its queue share) is next; within that team the run
 * of highest priority, then the oldest. Total and deterministic.
 */
export class QueueLines {
  private readonly lines = new Map<string, QueuedRun[]>();
  private readonly above: ReadonlySet<string>;
  private held: Record<string, Record<string, number>>;
  private load: ReadonlyMap<string, number> | undefined;

  constructor(
    waiting: readonly QueuedRun[],
    running: readonly RunningRun[],
    private readonly facts: TeamFacts,
    now: number,
  ) {
    const rank = (run: QueuedRun) => run.priority + Math.floor(Math.max(0, now - waitsSince(run)) / AGING_MS);
    const ranked = waiting.map((run) => ({ run, rank: rank(run) }));
    for (const { run } of ranked.sort((a, b) => b.rank - a.rank || byAge(a.run, b.run))) {
      const line = this.lines.get(run.team);
      if (line) line.push(run);
      else this.lines.set(run.team, [run]);
    }
    this.held = heldBy(running) as Record<string, Record<string, number>>;
    this.above = teamsAbove([...this.lines.keys(), ...running.map((r) => r.team)], facts);
  }

  /** The next run; undefined when none is left. */
  next(): QueuedRun | undefined {
    this.load ??= dominantHours(this.hours(), this.facts.pools ?? {});
    const { load } = this;
    const key = (team: string) => (load.get(team) ?? 0) / shareOf(team, this.facts.shares);
    const side = (team: string) => (this.above.has(team) ? 1 : 0);
    const [first] = [...this.lines].sort(([a], [b]) => side(a) - side(b) || key(a) - key(b) || compare(a, b));
    if (!first) return undefined;
    const [team, [run, ...others]] = first;
    if (others.length > 0) this.lines.set(team, others);
    else this.lines.delete(team);
    return run;
  }

  /** Whether the team has used more than its entitlement. */
  isAbove(team: string): boolean {
    return this.above.has(team);
  }

  /** The run starts: its instances count for its team from now on. */
  take(run: QueuedRun): void {
    this.held[run.team] = addTo(this.held[run.team] ?? {}, poolsOf(run));
    this.load = undefined;
  }

  /** One hour of the currently held instances is added to the past use, so that two teams without past use take turns. */
  private hours(): ByTeam {
    const { hours } = this.facts.usage ?? NO_USAGE;
    const teams = new Set([...Object.keys(hours), ...Object.keys(this.held)]);
    return Object.fromEntries([...teams].map((team) => [team, addTo({ ...hours[team] }, this.held[team])]));
  }
}

/**
 * Teams whose part of the dominant shares exceeds their part of the queue shares, among the given teams and all teams that have used
 * anything.
 */
export function teamsAbove(teams: readonly string[], { shares, pools = {}, usage = NO_USAGE }: TeamFacts): Set<string> {
  const used = dominantHours(usage.hours, pools);
  const all = [...new Set([...teams, ...used.keys()])];
  const usedByAll = all.reduce((total, team) => total + (used.get(team) ?? 0), 0);
  const sharesOfAll = all.reduce((total, team) => total + shareOf(team, shares), 0);
  if (usedByAll === 0) return new Set();
  const isAbove = (team: string) => (used.get(team) ?? 0) / usedByAll > shareOf(team, shares) / sharesOfAll + SAME;
  return new Set(all.filter(isAbove));
}

/** The order of the waiting runs if each of them could start. */
export function queueOrder(
  waiting: readonly QueuedRun[],
  running: readonly RunningRun[],
  facts: TeamFacts,
  now: number,
): QueuedRun[] {
  const lines = new QueueLines(waiting, running, facts, now);
  const ordered: QueuedRun[] = [];
  for (let run = lines.next(); run; run = lines.next()) {
    ordered.push(run);
    lines.take(run);
  }
  return ordered;
}

const shareOf = (team: string, shares: Readonly<Record<string, number>>): number => shares[team] ?? 1;
/** Order of texts by their code units. */
export const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const byAge = (a: QueuedRun, b: QueuedRun): number => a.queuedAt - b.queuedAt || compare(a.runId, b.runId);
