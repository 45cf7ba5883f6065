import { PREEMPTION_TIMES, type PreemptionTimes } from '../config/environment/limits';
import { type Admission, admit, freeIn, type QueueInput, take } from './admit';
import { compare, type QueuedRun, type QueueSize, type RunningRun, teamsAbove, waitsSince } from './order';

const MINUTE_MS = 60_000;
/** Maximum number of waiting runs that one pass considers, in the order of the queue. */
const MAX_ASKING = 20;

/** A run whose job trains and may be asked to save and exit. */
export interface PreemptibleRun {
  /** The run as it would be queued: its priority, and when it joined. */
  run: QueuedRun;
  /** Since when its job trains, epoch milliseconds. */
  trainingSince: number;
  /** When it last went back to the queue for another run. @default - never */
  preemptedAt?: number;
  /** Whether it has already been asked. */
  isRequested: boolean;
}

/** Which run should save and exit, and in favour of which run. */
export interface Preemption {
  runId: string;
  for: string;
}

/**
 * Chooses the running jobs that are asked to exit in favour of the first waiting run that they enable to start: as few as possible, and
 * never one that the queue would restart immediately. No job exits in favour of a run for which a pool could not be read. Capacity of jobs
 * that were asked earlier counts as free. Pure and deterministic.
 */
export function choosePreemptions(
  input: QueueInput,
  preemptible: readonly PreemptibleRun[],
  times: PreemptionTimes = PREEMPTION_TIMES,
): Preemption[] {
  const requested = preemptible.filter((one) => one.isRequested);
  const open = preemptible.filter((one) => !one.isRequested && isRipe(one, times, input.now));
  if (open.length === 0) return [];
  const above = teamsAbove(
    [...input.waiting, ...input.running].map((run) => run.team),
    input,
  );
  const isWeaker = (run: QueuedRun, one: PreemptibleRun) => goesBefore(run, one.run, above) && sharesPool(run, one.run);
  if (!input.waiting.some((run) => open.some((one) => isWeaker(run, one)))) return [];
  const soon = withoutRunning(input, requested);
  const asking = admit(soon)
    .waits.flatMap(({ runId }) => input.waiting.filter((run) => run.runId === runId))
    .filter((run) => input.now - waitsSince(run) >= times.afterMinutes * MINUTE_MS)
    .filter(({ needs }) => !Object.keys(needs).some((pool) => input.pools[pool]?.isUnread))
    .slice(0, MAX_ASKING);
  for (const run of asking) {
    const weaker = open.filter((one) => isWeaker(run, one));
    if (weaker.length === 0) continue;
    const leaving = fewest(soon, run, weaker.sort(byLoss));
    if (leaving.length > 0) return leaving.map((one) => ({ runId: one.run.runId, for: run.runId }));
  }
  return [];
}

function isRipe({ trainingSince, preemptedAt }: PreemptibleRun, times: PreemptionTimes, now: number): boolean {
  if (now - trainingSince < times.leastTrainingMinutes * MINUTE_MS) return false;
  return preemptedAt === undefined || now - preemptedAt >= times.protectedMinutes * MINUTE_MS;
}

/** Within a team, the run with the higher priority goes first; between teams, a team below its entitlement goes before one above. */
function goesBefore(run: QueuedRun, other: QueuedRun, above: ReadonlySet<string>): boolean {
  if (run.team === other.team) return run.priority > other.priority;
  return above.has(other.team) && !above.has(run.team);
}

const sharesPool = (run: RunningRun, other: RunningRun): boolean =>
  Object.keys(run.needs).some((pool) => (other.needs[pool] ?? 0) > 0);

/** Lowest priority first, then the run that has trained for the shortest time. */
const byLoss = (a: PreemptibleRun, b: PreemptibleRun): number =>
  a.run.priority - b.run.priority || b.trainingSince - a.trainingSince || compare(a.run.runId, b.run.runId);

/**
 * A subset of the given runs whose capacity lets the run start and from which none can be removed; empty when even all of them do not
 * suffice.
 */
function fewest(input: QueueInput, run: QueuedRun, from: readonly PreemptibleRun[]): PreemptibleRun[] {
  const startsWith = (leaving: readonly PreemptibleRun[]) => admit(withoutRunning(input, leaving)).admitted;
  const lets = (leaving: readonly PreemptibleRun[]) => startsWith(leaving).includes(run.runId);
  if (!lets(from)) return [];
  const enough = from.findIndex((_, i) => lets(from.slice(0, i + 1)));
  const needed = from.slice(0, enough + 1);
  const fewer = needed.reduce<readonly PreemptibleRun[]>((kept, one) => {
    const others = kept.filter((other) => other !== one);
    return lets(others) ? others : kept;
  }, needed);
  const started = startsWith(fewer);
  return fewer.some((one) => started.includes(one.run.runId)) ? [] : [...fewer];
}

/** The queue after these runs have exited: they wait in it at their old places. */
function withoutRunning(input: QueueInput, leaving: readonly PreemptibleRun[]): QueueInput {
  const ids = new Set(leaving.map((one) => one.run.runId));
  return {
    ...input,
    running: input.running.filter((run) => !ids.has(run.runId)),
    waiting: [...input.waiting, ...leaving.map(({ run }) => ({ ...run, waitingSince: input.now }))],
  };
}

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
