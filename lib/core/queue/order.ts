import {
  type ByTeam,
  dominantHours,
  heldBy,
  NO_USAGE,
  type PoolLimit,
  poolsOf,
  type QueuedRun,
  type QueueUsage,
  type RunningRun,
  waitsSince,
} from './usage';

/** For each such period that a run has waited, its priority within its team rises by one. */
const AGING_MS = 24 * 3_600_000;
/** Differences of this size are rounding errors and do not decide between teams. */
const SAME = 1e-9;

/** Inputs of the order of teams. */
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
    const pools = this.held[run.team] ?? {};
    for (const [pool, count] of Object.entries(poolsOf(run))) pools[pool] = (pools[pool] ?? 0) + count;
    this.held[run.team] = pools;
    this.load = undefined;
  }

  private hours(): ByTeam {
    const { hours } = this.facts.usage ?? NO_USAGE;
    const teams = new Set([...Object.keys(hours), ...Object.keys(this.held)]);
    return Object.fromEntries([...teams].map((team) => [team, sum(hours[team] ?? {}, this.held[team] ?? {})]));
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

/** One hour of the currently held instances is added to the past use, so that two teams without past use take turns. */
function sum(used: Readonly<Record<string, number>>, held: Readonly<Record<string, number>>): Record<string, number> {
  const pools = new Set([...Object.keys(used), ...Object.keys(held)]);
  return Object.fromEntries([...pools].map((pool) => [pool, (used[pool] ?? 0) + (held[pool] ?? 0)]));
}

const shareOf = (team: string, shares: Readonly<Record<string, number>>): number => shares[team] ?? 1;
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const byAge = (a: QueuedRun, b: QueuedRun): number => a.queuedAt - b.queuedAt || compare(a.runId, b.runId);
