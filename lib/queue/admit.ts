import { queueOrder } from './order';
import type { PoolLimit, PoolNeeds, QueuedRun, RunningRun } from './run';

/** A run that does not fit keeps what it needs free for itself once it has waited this long; until then smaller ones may pass. */
export const PATIENCE_MS = 3_600_000;

export interface QueueInput {
  waiting: readonly QueuedRun[];
  running: readonly RunningRun[];
  pools: Readonly<Record<string, PoolLimit>>;
  /** Queue shares by team; 1 where not named. */
  shares: Readonly<Record<string, number>>;
  /** Ids of completed runs, and `latest:<name>` where the newest run of that name is completed. */
  completed: ReadonlySet<string>;
  /** Epoch milliseconds. */
  now: number;
}

export interface Place {
  runId: string;
  /** 1 = next. */
  position: number;
  /** Why it waits, for `list`. */
  why: string;
}

export interface Admission {
  admitted: string[];
  waits: Place[];
}

/**
 * Which waiting runs start now, in queue order, and why each of the others waits. Small runs may pass a large one that does not
 * fit, but only for an hour: then its pools are kept for it, so that every run whose needs are within the limits starts some day.
 */
export function admit(input: QueueInput): Admission {
  const used = new Map<string, number>();
  for (const run of input.running) take(used, run.needs);
  const kept = new Map<string, string>();
  const result: Admission = { admitted: [], waits: [] };
  for (const run of queueOrder(input.waiting, input.running, input.shares, input.now)) {
    const why = reasonToWait(run, input, used, kept);
    if (why === undefined) {
      take(used, run.needs);
      result.admitted.push(run.runId);
      continue;
    }
    if (keepsItsPlace(run, input)) for (const pool of Object.keys(run.needs)) setOnce(kept, pool, run.runId);
    result.waits.push({ runId: run.runId, position: result.waits.length + 1, why });
  }
  return result;
}

function reasonToWait(
  run: QueuedRun,
  input: QueueInput,
  used: ReadonlyMap<string, number>,
  kept: ReadonlyMap<string, string>,
): string | undefined {
  const open = run.after.filter((id) => !input.completed.has(id));
  if (open.length > 0) return `waits for ${open.join(', ')}`;
  if (run.notBefore !== undefined && run.notBefore > input.now) return 'waits before it asks for capacity again';
  for (const [pool, needed] of Object.entries(run.needs)) {
    const { limit, usedByOthers, name } = input.pools[pool] ?? { limit: null, usedByOthers: 0, name: pool };
    const holder = kept.get(pool);
    if (holder) return `${name} is kept for ${holder}, which waits longer`;
    if (limit === null) continue;
    if (needed > limit) return `${name}: needs ${needed}, the limit is ${limit}`;
    const free = limit - usedByOthers - (used.get(pool) ?? 0);
    if (needed > free) return `${name}: needs ${needed}, ${Math.max(0, free)} of ${limit} are free`;
  }
  return undefined;
}

/** Only a run that could start when others end may keep its place: one that waits for another run, or asks too much, must not. */
function keepsItsPlace(run: QueuedRun, input: QueueInput): boolean {
  const isReady = run.after.every((id) => input.completed.has(id));
  const isOld = input.now - run.queuedAt >= PATIENCE_MS;
  const isPossible = Object.entries(run.needs).every(
    ([pool, needed]) => needed <= (input.pools[pool]?.limit ?? needed),
  );
  return isReady && isOld && isPossible;
}

function take(used: Map<string, number>, needs: PoolNeeds): void {
  for (const [pool, count] of Object.entries(needs)) used.set(pool, (used.get(pool) ?? 0) + count);
}

function setOnce(map: Map<string, string>, key: string, value: string): void {
  if (!map.has(key)) map.set(key, value);
}
