import {
  type PoolLimit,
  type PoolNeeds,
  type QueuedRun,
  QueueLines,
  type RunningRun,
  type TeamFacts,
  waitsSince,
} from './order';

/** A run that lacks capacity has it reserved once it has waited this long; until then other runs may pass it. */
export const PATIENCE_MS = 3_600_000;

/** The complete input of one pass over the queue. */
export interface QueueInput extends TeamFacts {
  waiting: readonly QueuedRun[];
  running: readonly RunningRun[];
  pools: Readonly<Record<string, PoolLimit>>;
  /** Epoch milliseconds. */
  now: number;
}

/** The outcome of a pass: which runs start, and why the others wait. */
export interface Admission {
  admitted: string[];
  /** For runs that start with a smaller size than their first choice: the capacity option, by run id. */
  sizes: Record<string, string>;
  /** In the order of the queue; `why` is shown by `list`. */
  waits: { runId: string; why: string }[];
}

/** Capacity that is reserved for a run: no run that joined later may take it. */
interface Reservation {
  runId: string;
  queuedAt: number;
  /**
   * The run has been held back although it fits: from now on a team above its entitlement does not get the capacity either, however long
   * its run waits.
   */
  isStrict: boolean;
}

/**
 * Decides which waiting runs start now, in queue order, and why each of the others waits. Other runs may pass a run that does not fit, but
 * only for an hour: after that, the pools in which it lacks capacity are reserved for it against every run that joined later. Nothing is
 * reserved for a run that could not start even if all our running jobs ended: one in backoff, above a limit, or blocked by jobs of others.
 */
export function admit(input: QueueInput): Admission {
  const used = new Map<string, number>();
  for (const run of input.running) take(used, run.needs);
  const kept = new Map<string, Reservation>();
  const result: Admission = { admitted: [], sizes: {}, waits: [] };
  const lines = new QueueLines(input.waiting, input.running, input, input.now);
  for (let run = lines.next(); run; run = lines.next()) {
    const isAbove = lines.isAbove(run.team);
    const reasonFor = (size: QueuedRun) => reasonToWait(size, input, { used, kept }, isAbove);
    const sizes = sizesOf(run);
    const size = sizes.find((one) => reasonFor(one.run) === undefined);
    if (size) {
      take(used, size.run.needs);
      lines.take(size.run);
      result.admitted.push(run.runId);
      if (size.capacityOptionId !== undefined) result.sizes[run.runId] = size.capacityOptionId;
      continue;
    }
    // An elastic run waits for its smallest size.
    const least = sizes.at(-1)?.run ?? run;
    const why = reasonFor(least) ?? '';
    for (const pool of poolsToKeep(least, input, used)) keep(kept, pool, run);
    result.waits.push({ runId: run.runId, why });
  }
  return result;
}

const sizesOf = ({ smaller = [], ...run }: QueuedRun): { run: QueuedRun; capacityOptionId?: string }[] => [
  { run },
  ...smaller.map(({ capacityOptionId, instances, needs }) => ({ run: { ...run, instances, needs }, capacityOptionId })),
];

interface Taken {
  used: ReadonlyMap<string, number>;
  kept: ReadonlyMap<string, Reservation>;
}

function reasonToWait(run: QueuedRun, input: QueueInput, { used, kept }: Taken, isAbove: boolean): string | undefined {
  const why = notReady(run, input);
  if (why) return why;
  for (const [pool, needed] of Object.entries(run.needs)) {
    const { limit, name } = poolOf(pool, input);
    if (limit === null) continue;
    if (needed > limit) return `${name}: needs ${needed}, the limit is ${limit}`;
    const free = freeIn(pool, input, used);
    if (needed > free) return `${name}: needs ${needed}, ${Math.max(0, free)} of ${limit} are free`;
  }
  return reasonToYield(run, input, kept, isAbove);
}

/** Why a run that fits must wait: capacity is reserved for another run. */
function reasonToYield(
  run: QueuedRun,
  input: QueueInput,
  kept: ReadonlyMap<string, Reservation>,
  isAbove: boolean,
): string | undefined {
  for (const pool of Object.keys(run.needs)) {
    const holder = kept.get(pool);
    if (!holder) continue;
    const { name } = poolOf(pool, input);
    if (holder.queuedAt <= run.queuedAt) {
      holder.isStrict ||= !isAbove;
      return `${name} is kept for ${holder.runId}, which waits longer`;
    }
    if (isAbove && holder.isStrict) return `${name} is kept for ${holder.runId}, whose team has used less of its share`;
  }
  return undefined;
}

function notReady(run: QueuedRun, { now }: QueueInput): string | undefined {
  if (run.hold !== undefined) return run.hold;
  if (run.after.length > 0) return `waits for ${run.after.join(', ')}`;
  if (run.notBefore === undefined || run.notBefore <= now) return undefined;
  // A run with a start time joins the queue no earlier than that time; other runs wait because of a backoff.
  return run.queuedAt >= run.notBefore
    ? `waiting until ${new Date(run.notBefore).toISOString()}`
    : 'waits before it asks for capacity again';
}

/** The pools to reserve for a run that has waited for long and would start if other jobs of ours ended. */
function poolsToKeep(run: QueuedRun, input: QueueInput, used: ReadonlyMap<string, number>): string[] {
  const isOld = input.now - waitsSince(run) >= PATIENCE_MS;
  if (!isOld || notReady(run, input)) return [];
  const limited = Object.entries(run.needs).filter(([pool]) => poolOf(pool, input).limit !== null);
  const isPossible = limited.every(([pool, needed]) => {
    const { limit, usedByOthers } = poolOf(pool, input);
    return needed <= (limit ?? needed) - usedByOthers;
  });
  if (!isPossible) return [];
  return limited.filter(([pool, needed]) => needed > freeIn(pool, input, used)).map(([pool]) => pool);
}

const poolOf = (pool: string, { pools }: Pick<QueueInput, 'pools'>): PoolLimit =>
  pools[pool] ?? { limit: null, usedByOthers: 0, name: pool };

export function freeIn(pool: string, input: Pick<QueueInput, 'pools'>, used: ReadonlyMap<string, number>): number {
  const { limit, usedByOthers } = poolOf(pool, input);
  return limit === null ? Number.POSITIVE_INFINITY : limit - usedByOthers - (used.get(pool) ?? 0);
}

export function take(used: Map<string, number>, needs: PoolNeeds): void {
  for (const [pool, count] of Object.entries(needs)) used.set(pool, (used.get(pool) ?? 0) + count);
}

/** The run that has waited longest gets the reservation of a pool. */
function keep(kept: Map<string, Reservation>, pool: string, { runId, queuedAt }: QueuedRun): void {
  const holder = kept.get(pool);
  if (!holder || queuedAt < holder.queuedAt) {
    kept.set(pool, { runId, queuedAt, isStrict: holder?.isStrict ?? false });
  }
}
