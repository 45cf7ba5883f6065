import { isDeepStrictEqual } from 'node:util';
import { BatchGetItemCommand } from '@aws-sdk/client-dynamodb';
import { admitRun } from '../../core/lifecycle/intent';
import { mayGrow } from '../../core/lifecycle/phases/grow';
import type { RunRecord } from '../../core/lifecycle/record';
import { type Admission, admit, type QueueInput } from '../../core/queue/admit';
import { advanceUsage, NO_USAGE, type QueueUsage } from '../../core/queue/order';
import { describeError } from '../shared/errors';
import { runKey } from '../shared/items';
import { sendAbout } from '../shared/queue';
import { holdsCapacity, isQueued, runningRun } from '../shared/queue-runs';
import { idOf, runsIn } from '../shared/run-store';
import type { QueueDocument } from '../shared/stored';
import type { ReconcileDeps } from './deps';
import { announce } from './notify/event-bus';
import { holdOf, teamHolds } from './queue/others-usage';
import { growNow, keepReservations, preemptRuns, releaseReservations, reservationChanges } from './queue/preempt-runs';
import { heldNow, heldOptionId, poolsOf, queuedOnItsSizes, stillAwaited } from './queue/queue-pools';
import { isolateFailure, needsOf } from './queue/run-needs';
import { type AwaitedRuns, awaitedRuns, notifyBlocked } from './queue/waits-for';
import { reportUnreadable } from './unreadable-items';

/**
 * Starts waiting runs of all teams, as far as capacity allows. Messages of this kind share one group of the FIFO queue, so that two passes
 * never count the same free instances; in any case the service enforces its own limit.
 * @param changed a run whose newest state may not be in the index of active runs yet
 */
export async function admitRuns(deps: ReconcileDeps, changed?: string): Promise<void> {
  const active = await newest(deps, await deps.store.active(), changed);
  const queued = active.filter(isQueued);
  const holding = active.filter(holdsCapacity);
  const needs = await needsOf(deps, [...queued, ...holding]);
  if (needs.unreadable.length > 0) await reportUnreadable(deps, 'INTENT', needs.unreadable);
  const waiting = queued.filter(({ runId }) => !needs.unreadable.some((item) => item.runId === runId));
  const before = await rememberedQueue(deps);
  const started = deps.now().getTime();
  const queue = before && (await rememberUsage(deps, { before, held: heldNow(holding, needs), now: started }));
  if (waiting.length === 0 && !holding.some((run) => mayGrow(run, started))) return;
  const pools = await poolsOf(deps, active, needs.all);
  if (queue) await rememberLimits(deps, queue, pools);
  const awaited = await awaitedRuns(deps, waiting);
  const holds = await teamHolds(deps, active);
  const now = deps.now().getTime();
  const input: QueueInput = {
    waiting: waiting.map((run) => ({
      ...queuedOnItsSizes(run, needs),
      ...holdOf(run, holds),
      after: stillAwaited(run, awaited),
    })),
    running: holding.map((run) => runningRun(run, needs.of(run, heldOptionId(run)))),
    pools,
    shares: deps.shares,
    usage: advanceUsage(queue?.usage ?? NO_USAGE, heldNow(holding, needs), now),
    now,
  };
  const admission = admit(input);
  const reservations = reservationChanges(input, admission, holding, needs);
  if (!(await releaseReservations(deps, reservations))) return;
  await startOrWait(deps, waiting, { ...admission, awaited, now, places: await createPlaces(deps, admission, now) });
  // Newly admitted runs count as holding their instances from the next pass on.
  if (admission.admitted.length === 0) await preemptRuns(deps, input, holding, needs);
  await keepReservations(deps, reservations);
  await growNow(deps, holding, reservations);
}

async function startOrWait(
  deps: ReconcileDeps,
  waiting: readonly RunRecord[],
  { admitted, sizes, waits, awaited, now, places }: Admission & { awaited: AwaitedRuns; now: number; places: Places },
): Promise<void> {
  const reasons = new Map(waits.map(({ runId, why }) => [runId, why]));
  const starting = new Set(admitted);
  // A pass that ends early has at least started what may start.
  for (const run of waiting.filter(({ runId }) => starting.has(runId)))
    await isolateFailure(deps, run, async () => {
      const notBefore = places.get(run.runId);
      const placed = notBefore === undefined ? run : { ...run, notBefore: Math.max(run.notBefore ?? 0, notBefore) };
      await letStart(deps, placed, now, sizes[run.runId]);
    });
  for (const run of waiting.filter(({ runId }) => reasons.has(runId)))
    await isolateFailure(deps, run, async () =>
      recordReason(deps, await notifyBlocked(deps, run, awaited, now), reasons.get(run.runId) ?? ''),
    );
}

/** When the first create call of each admitted run may be made, if not at once. */
type Places = ReadonlyMap<string, number>;

/**
 * CreateTrainingJob takes one call a second of an account and Region. Calls of a burst that come together are throttled, and their repeats
 * throttle others, so that each admitted run gets a place of its own a little further apart than that.
 */
const CREATE_EVERY_MS = 1250;

/** Only passes of the queue give places, and these never run concurrently. */
async function createPlaces(deps: ReconcileDeps, { admitted }: Admission, now: number): Promise<Places> {
  if (admitted.length === 0) return new Map();
  const queue = await rememberedQueue(deps);
  if (!queue) return new Map();
  const first = Math.max(now, queue.nextCreateAt ?? now);
  const places = admitted.map((runId, i): [string, number] => [runId, first + i * CREATE_EVERY_MS]);
  await deps.store.saveQueue({ ...queue, nextCreateAt: first + admitted.length * CREATE_EVERY_MS });
  return new Map(places.filter(([, at]) => at > now + CREATE_EVERY_MS));
}

/** Undefined when it cannot be read: the queue continues, and all teams count as equal in this pass. */
async function rememberedQueue(deps: ReconcileDeps): Promise<QueueDocument | undefined> {
  try {
    return (await deps.store.findQueue()) ?? { usage: NO_USAGE, shares: deps.shares };
  } catch (error) {
    deps.log('error', 'what the teams have used could not be read', { error: describeError(error) });
    return undefined;
  }
}

/**
 * Written only when the held instances change: otherwise the next reader computes the same use.
 * @returns the document as it is then
 */
async function rememberUsage(
  deps: ReconcileDeps,
  { before, held, now }: { before: QueueDocument; held: QueueUsage['held']; now: number },
): Promise<QueueDocument> {
  if (isDeepStrictEqual(before.usage.held, held)) return before;
  return saveQueue(deps, before, { usage: advanceUsage(before.usage, held, now), shares: deps.shares });
}

/** For the positions that people see, which depend on them; they change with quotas. */
async function rememberLimits(deps: ReconcileDeps, before: QueueDocument, pools: QueueInput['pools']): Promise<void> {
  const known = Object.entries(pools).flatMap(([pool, { limit }]): [string, number][] =>
    limit === null ? [] : [[pool, limit]],
  );
  const limits = Object.fromEntries(known);
  if (!isDeepStrictEqual(before.limits, limits)) await saveQueue(deps, before, { limits });
}

async function saveQueue(
  deps: ReconcileDeps,
  before: QueueDocument,
  changes: Partial<QueueDocument>,
): Promise<QueueDocument> {
  const queue = { ...before, ...changes };
  try {
    await deps.store.saveQueue(queue);
    return queue;
  } catch (error) {
    deps.log('warn', 'what the teams have used was not written', { error: describeError(error) });
    return before;
  }
}

/**
 * The index is eventually consistent, so runs that may start are read again from the table. Runs that hold capacity are used as the index
 * shows them, except elastic runs, whose number of instances differs between attempts. A waiting run that cannot be read does not start.
 */
async function newest(deps: ReconcileDeps, listed: readonly RunRecord[], changed?: string): Promise<RunRecord[]> {
  const requested = new Set(listed.filter(mayHaveChanged).map(({ runId }) => runId));
  if (changed !== undefined) requested.add(changed);
  const seen = await readAgain(deps, [...requested]);
  const known = listed.map((run) => {
    if (!requested.has(run.runId)) return run;
    return seen.has(run.runId) ? seen.get(run.runId) : { ...run, confirmed: false };
  });
  const isListed = listed.some((run) => run.runId === changed);
  const late = changed === undefined || isListed ? undefined : seen.get(changed);
  return [...known, late].filter((run) => run !== undefined);
}

/** Whether the capacity that the run holds or waits for may differ from what the index shows. */
const mayHaveChanged = (run: RunRecord): boolean => isQueued(run) || run.policy.pendingSeconds !== undefined;

async function letStart(deps: ReconcileDeps, run: RunRecord, now: number, capacityOptionId?: string): Promise<void> {
  const { record, events } = admitRun(run, 'admitted by the queue', now, capacityOptionId);
  if (!(await deps.store.save(record, run, events))) return;
  await announce(deps, run, record);
  await sendAbout(deps, 'run', record);
}

/** Records why a run waits, for `list`; an unchanged reason is not written again. */
async function recordReason(deps: ReconcileDeps, run: RunRecord, why: string): Promise<void> {
  if (run.reason === why) return;
  await deps.store.save({ ...run, reason: why, version: run.version + 1 }, run, []);
}

/**
 * Number of keys that one BatchGetItem may contain: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
 */
const MAX_IN_READ = 100;
/**
 * A batch read leaves items unprocessed when it is throttled or its answer exceeds 16 MB; they are requested up to this many times, each
 * time after twice the delay.
 */
const MAX_READS = 3;
const FIRST_PAUSE_MS = 100;

type Deps = Pick<ReconcileDeps, 'store' | 'log' | 'sleep'>;
type Found = Map<string, RunRecord | undefined>;

/**
 * Current records of runs, by id; undefined for a run that does not exist. Runs that could not be read are missing from the map: the next
 * pass requests them again.
 * @param runIds without duplicates
 */
export async function readAgain(deps: Deps, runIds: readonly string[]): Promise<Found> {
  const found: Found = new Map();
  for (let from = 0; from < runIds.length; from += MAX_IN_READ) {
    await readSome(deps, runIds.slice(from, from + MAX_IN_READ), found);
  }
  return found;
}

async function readSome(deps: Deps, runIds: readonly string[], found: Found): Promise<void> {
  let requested = runIds;
  let error = 'the service left them out each time';
  try {
    for (let tries = 0; tries < MAX_READS && requested.length > 0; tries++) {
      if (tries > 0) await deps.sleep(FIRST_PAUSE_MS * 2 ** (tries - 1));
      requested = await read(deps, requested, found);
    }
  } catch (thrown) {
    error = describeError(thrown);
  }
  if (requested.length > 0) deps.log('error', 'runs were passed over by the queue', { runIds: requested, error });
}

/** @returns the runs that the service left unprocessed */
async function read({ store }: Deps, runIds: readonly string[], found: Found): Promise<string[]> {
  const { tableName, dynamodb } = store;
  const RequestItems = { [tableName]: { Keys: runIds.map(runKey), ConsistentRead: true } };
  const { Responses, UnprocessedKeys } = await dynamodb.send(new BatchGetItemCommand({ RequestItems }));
  const left = (UnprocessedKeys?.[tableName]?.Keys ?? []).map(idOf);
  const items = Responses?.[tableName] ?? [];
  const records = runsIn(items);
  const isThere = new Set([...left, ...items.map(idOf)]);
  for (const runId of runIds) if (records.has(runId) || !isThere.has(runId)) found.set(runId, records.get(runId));
  return left;
}
