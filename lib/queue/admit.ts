import { QueueLines, type TeamFacts } from './order';
import { type PoolLimit, type PoolNeeds, type QueuedRun, type RunningRun, waitsSince } from './run';

/** A run that lacks room keeps it free for itself once it has waited this long; until then others may pass. */
export const PATIENCE_MS = 3_600_000;

/** Everything that one pass over the queue decides by. */
export interface QueueInput extends TeamFacts {
  waiting: readonly QueuedRun[];
  running: readonly RunningRun[];
  pools: Readonly<Record<string, PoolLimit>>;
  /** Ids of completed runs, and `latest:<name>` where the newest run of that name is completed. */
  completed: ReadonlySet<string>;
  /** Epoch milliseconds. */
  now: number;
}

/** Where a waiting run stands, and why it waits. */
export interface Place {
  runId: string;
  /** 1 = next. */
  position: number;
  /** Why it waits, for `list`. */
  why: string;
}

/** The outcome of a pass: who starts, and where the others stand. */
export interface Admission {
  admitted: string[];
  /** Rungs of those that start with a smaller size than they ask for first, by run id. */
  sizes: Record<string, string>;
  waits: Place[];
}

/** Room that is kept for a run: nobody who came later takes it. */
interface Reservation {
  runId: string;
  queuedAt: number;
  /** It has held back a run that would fit: now a team above its entitlement does not get the room either, however long it waits. */
  isStrict: boolean;
}

/**
 * Which waiting runs start now, in queue order, and why each of the others waits. Others may pass a run that does not fit, but only for an
 * hour: then the pools in which it lacks room, and no others, are kept for it against every run that came later. Nothing is kept for a run
 * that could not start although all of ours ended: one in its back-off, above a limit, or against what jobs of others hold.
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
      if (size.rungId !== undefined) result.sizes[run.runId] = size.rungId;
      continue;
    }
    // An elastic run waits for its smallest size.
    const least = sizes.at(-1)?.run ?? run;
    const why = reasonFor(least) ?? '';
    for (const pool of poolsToKeep(least, input, used)) keep(kept, pool, run);
    result.waits.push({ runId: run.runId, position: result.waits.length + 1, why });
  }
  return result;
}

/** The run on each of its sizes, as it asks first and then smaller. */
const sizesOf = ({ smaller = [], ...run }: QueuedRun): { run: QueuedRun; rungId?: string }[] => [
  { run },
  ...smaller.map(({ rungId, instances, needs }) => ({ run: { ...run, instances, needs }, rungId })),
];

/** What of the pools is in use and what is kept, by pool. */
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

/** The run would fit, but room is kept for another one. */
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

function notReady(run: QueuedRun, { completed, now }: QueueInput): string | undefined {
  if (run.hold !== undefined) return run.hold;
  const open = run.after.filter((id) => !completed.has(id));
  if (open.length > 0) return `waits for ${open.join(', ')}`;
  if (run.notBefore === undefined || run.notBefore <= now) return undefined;
  // Only a run that was started for a time joins the queue no earlier than it may start.
  return run.queuedAt >= run.notBefore
    ? `waiting until ${new Date(run.notBefore).toISOString()}`
    : 'waits before it asks for capacity again';
}

/** The pools that have no room for a run which has waited for long, and which would start if others of ours ended. */
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

/** What is left of a pool. */
export function freeIn(pool: string, input: Pick<QueueInput, 'pools'>, used: ReadonlyMap<string, number>): number {
  const { limit, usedByOthers } = poolOf(pool, input);
  return limit === null ? Number.POSITIVE_INFINITY : limit - usedByOthers - (used.get(pool) ?? 0);
}

/** Counts what a run takes. */
export function take(used: Map<string, number>, needs: PoolNeeds): void {
  for (const [pool, count] of Object.entries(needs)) used.set(pool, (used.get(pool) ?? 0) + count);
}

/** The run that has waited longest keeps a pool. */
function keep(kept: Map<string, Reservation>, pool: string, { runId, queuedAt }: QueuedRun): void {
  const holder = kept.get(pool);
  if (!holder || queuedAt < holder.queuedAt) {
    kept.set(pool, { runId, queuedAt, isStrict: holder?.isStrict ?? false });
  }
}
