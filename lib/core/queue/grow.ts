import { type Admission, freeIn, type QueueInput, take } from './admit';
import type { QueueSize, RunningRun } from './run';

/** A running elastic run, and the larger sizes that it could use. */
export interface GrowingRun {
  run: RunningRun;
  /** Largest first. */
  larger: readonly QueueSize[];
}

/**
 * Offers the capacity that remains after all waiting runs to the running elastic runs, in their order. Returns the capacity option with
 * which each could continue. Skips pools in which a waiting run lacks capacity, or whose limit or use by others is not known. Pure.
 */
export function chooseGrowth(
  input: QueueInput,
  { admitted, sizes, waits }: Pick<Admission, 'admitted' | 'sizes' | 'waits'>,
  growing: readonly GrowingRun[],
): Map<string, string> {
  const used = new Map<string, number>();
  for (const run of input.running) take(used, run.needs);
  const started = input.waiting.filter((run) => admitted.includes(run.runId));
  for (const { runId, needs, smaller = [] } of started) {
    take(used, smaller.find((size) => size.capacityOptionId === sizes[runId])?.needs ?? needs);
  }
  const lacking = new Set(
    input.waiting
      .filter((run) => waits.some(({ runId }) => runId === run.runId))
      .flatMap(({ needs, smaller = [] }) => Object.entries(smaller.at(-1)?.needs ?? needs))
      .flatMap(([pool, needed]) => (needed > freeIn(pool, input, used) ? [pool] : [])),
  );
  const found = new Map<string, string>();
  for (const { run, larger } of growing) {
    const more = (size: QueueSize) =>
      Object.entries(size.needs).map(([pool, count]): [string, number] => [pool, count - (run.needs[pool] ?? 0)]);
    const isOpen = (pool: string) => !lacking.has(pool) && !input.pools[pool]?.isUnread;
    const fits = (size: QueueSize) =>
      more(size).every(([pool, extra]) => extra <= 0 || (isOpen(pool) && extra <= freeIn(pool, input, used)));
    const size = larger.find(fits);
    if (!size) continue;
    found.set(run.runId, size.capacityOptionId);
    take(used, Object.fromEntries(more(size)));
  }
  return found;
}
