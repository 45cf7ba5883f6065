/**
 * Number of instances that a run takes from each pool; the keys are quota codes, and `environment` for the guardrail
 * `maxConcurrentInstances`.
 */
export type PoolNeeds = Readonly<Record<string, number>>;

/** Pool of the environment's own limit on instances. */
export const ENVIRONMENT_POOL = 'environment';

/** A run that holds instances. */
export interface RunningRun {
  runId: string;
  team: string;
  /** Number of instances, for the team's share when its needs by pool are not known. */
  instances: number;
  needs: PoolNeeds;
}

/** One size of an elastic run. */
export interface QueueSize {
  /** Id of one of the capacity options of the run. */
  capacityOptionId: string;
  instances: number;
  needs: PoolNeeds;
}

/** A run that waits for instances. */
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

/** No past use. */
export const NO_USAGE: QueueUsage = { at: 0, hours: {}, held: {} };

/** Instances that runs hold, by team and pool. */
export function heldBy(running: readonly Pick<RunningRun, 'team' | 'instances' | 'needs'>[]): ByTeam {
  const held: Record<string, Record<string, number>> = {};
  for (const run of running) {
    const pools = held[run.team] ?? {};
    held[run.team] = pools;
    const needs = poolsOf(run);
    for (const pool in needs) pools[pool] = (pools[pool] ?? 0) + (needs[pool] ?? 0);
  }
  return held;
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
    const before = usage.hours[team] ?? {};
    const since = usage.held[team] ?? {};
    const pools = new Set([...Object.keys(before), ...Object.keys(since)]);
    const counted = [...pools].map((p): [string, number] => [
      p,
      (before[p] ?? 0) * left + (since[p] ?? 0) * weightedHours,
    ]);
    // Teams whose use has decayed to seconds are removed, so that the item does not grow with every instance type that was ever used.
    hours[team] = Object.fromEntries(counted.filter(([, value]) => value > 0.001));
  }
  return { at: now, hours, held };
}

/**
 * Dominant share of each team: the pool of whose capacity it used the largest part, in hours of the whole pool. For a pool without a known
 * limit, the use of all teams counts as its capacity; the guardrail `maxConcurrentInstances` counts only where it is set, or when nothing
 * else is known.
 */
export function dominantHours(hours: ByTeam, pools: Readonly<Record<string, PoolLimit>>): Map<string, number> {
  const total = new Map<string, number>();
  for (const used of Object.values(hours)) {
    for (const [pool, value] of Object.entries(used)) total.set(pool, (total.get(pool) ?? 0) + value);
  }
  const capacity = (pool: string) => pools[pool]?.limit || total.get(pool) || 1;
  const counts = (pool: string, used: Readonly<Record<string, number>>) =>
    pool !== ENVIRONMENT_POOL || pools[pool]?.limit != null || Object.keys(used).length === 1;
  const shareOf = (used: Readonly<Record<string, number>>) =>
    Math.max(0, ...Object.entries(used).map(([pool, value]) => (counts(pool, used) ? value / capacity(pool) : 0)));
  return new Map(Object.entries(hours).map(([team, used]) => [team, shareOf(used)]));
}
