import { isDeepStrictEqual } from 'node:util';
import { admitRun } from '../../lifecycle/intent';
import { runOnRung } from '../../lifecycle/ladder';
import type { RunRecord } from '../../lifecycle/record';
import { admit, type QueueInput } from '../../queue/admit';
import { ENVIRONMENT_POOL, type PoolNeeds } from '../../queue/run';
import { advanceUsage, heldBy, NO_USAGE, type QueueUsage } from '../../queue/usage';
import { type QuotaNeed, runQuotaNeeds } from '../../quota';
import { describeError } from '../shared/errors';
import { sendMessage } from '../shared/queue';
import { holdsCapacity, isQueued, queuedRun, runningRun, usesInstances } from '../shared/queue-runs';
import { announce } from './act';
import type { ReconcileDeps } from './deps';
import { makeRoom } from './make-room';
import { poolsOf } from './queue-pools';
import { awaitedRuns, tellBlocked } from './waits-for';

/**
 * Lets waiting runs start, over all teams. Messages of this kind share one group of the FIFO queue, so that two passes never count the same
 * free instances; the service's own limit stands behind it in any case.
 * @param changed a run whose newest state the index of active runs may not show yet
 */
export async function admitRuns(deps: ReconcileDeps, changed?: string): Promise<void> {
  const active = await newest(deps, await deps.store.active(), changed);
  const waiting = active.filter(isQueued);
  const holding = active.filter(holdsCapacity);
  const now = deps.now().getTime();
  const needs = await needsOf(deps, [...waiting, ...holding]);
  const poolNeeds = (run: RunRecord): PoolNeeds => ({
    ...Object.fromEntries((needs.get(run.runId) ?? []).map((n) => [n.name, n.needed])),
    [ENVIRONMENT_POOL]: runningRun(run, {}).instances,
  });
  const running = holding.map((run) => runningRun(run, poolNeeds(run)));
  const using = holding.filter(usesInstances).map((run) => runningRun(run, poolNeeds(run)));
  const before = await rememberedUsage(deps);
  const usage = advanceUsage(before ?? NO_USAGE, heldBy(using), now);
  if (before) await rememberUsage(deps, before, usage);
  if (waiting.length === 0) return;
  const pools = await poolsOf(deps, active, [...needs.values()].flat());
  const awaited = await awaitedRuns(deps, waiting);
  const queued = waiting.map((run) => queuedRun(run, poolNeeds(run)));
  const input: QueueInput = {
    waiting: queued,
    running,
    pools,
    shares: deps.shares,
    usage,
    completed: new Set([...awaited].filter(([, run]) => run?.state === 'completed').map(([wanted]) => wanted)),
    now,
  };
  const { admitted, waits } = admit(input);
  for (const run of waiting) {
    const why = waits.find((w) => w.runId === run.runId)?.why;
    await apart(deps, run, async () => {
      if (admitted.includes(run.runId)) await letStart(deps, run, now);
      if (why) await sayWhy(deps, await tellBlocked(deps, run, awaited, now), why);
    });
  }
  // What has just been let start holds its room from the next pass on.
  if (admitted.length === 0) await makeRoom(deps, input, holding, poolNeeds);
}

/** Undefined when it cannot be read: the queue goes on, and the teams are equal in this pass. */
async function rememberedUsage(deps: ReconcileDeps): Promise<QueueUsage | undefined> {
  try {
    return (await deps.store.findQueue())?.usage ?? NO_USAGE;
  } catch (error) {
    deps.log('error', 'what the teams have used could not be read', { error: describeError(error) });
    return undefined;
  }
}

/** What is held for long is counted by whoever reads it next: only a change is written. */
async function rememberUsage(deps: ReconcileDeps, before: QueueUsage, usage: QueueUsage): Promise<void> {
  if (isDeepStrictEqual(before.held, usage.held)) return;
  try {
    await deps.store.saveQueue({ usage, shares: deps.shares });
  } catch (error) {
    deps.log('warn', 'what the teams have used was not written', { error: describeError(error) });
  }
}

/** What goes wrong with one run stays with it: the next pass of the tick tries it again. */
export async function apart<T>(deps: ReconcileDeps, run: RunRecord, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    deps.log('error', 'a run was passed over by the queue', { runId: run.runId, error: describeError(error) });
    return undefined;
  }
}

/**
 * The index lags behind; who starts is decided on what is written. Runs that hold capacity are taken as the index shows them. A waiting run
 * that cannot be read does not start.
 */
async function newest(deps: ReconcileDeps, listed: readonly RunRecord[], changed?: string): Promise<RunRecord[]> {
  const reread = async (run: RunRecord) => {
    if (!isQueued(run) && run.runId !== changed) return run;
    const seen = await apart(deps, run, async () => ({ run: await deps.store.find(run.runId) }));
    return seen ? seen.run : { ...run, confirmed: false };
  };
  const isListed = listed.some((run) => run.runId === changed);
  const late = changed === undefined || isListed ? undefined : deps.store.find(changed);
  return (await Promise.all([...listed.map(reread), late])).filter((run) => run !== undefined);
}

/** Needs by run and rung: an intent never changes. One cache a store. */
const needsCache = new WeakMap<object, Map<string, QuotaNeed[]>>();

/** Pools of each run, by quota name. A run whose intent cannot be read needs nothing that we know of, and the service decides. */
async function needsOf(deps: ReconcileDeps, runs: readonly RunRecord[]): Promise<Map<string, QuotaNeed[]>> {
  const before = needsCache.get(deps.store) ?? new Map<string, QuotaNeed[]>();
  const kept = new Map<string, QuotaNeed[]>();
  const needs = async (run: RunRecord): Promise<[string, QuotaNeed[]]> => {
    const key = `${run.runId}/${run.rungId}`;
    const found = before.get(key) ?? (await readNeeds(deps, run));
    if (found) kept.set(key, found);
    return [run.runId, found ?? []];
  };
  const pairs = await Promise.all(runs.map(needs));
  // Only what is active now: the cache does not grow.
  needsCache.set(deps.store, kept);
  return new Map(pairs);
}

async function readNeeds(deps: ReconcileDeps, run: RunRecord): Promise<QuotaNeed[] | undefined> {
  const intent = await apart(deps, run, () => deps.store.findIntent(run.runId));
  return intent && runQuotaNeeds(runOnRung(intent.spec, run.rungId)).filter((need) => need.kind === 'pool');
}

async function letStart(deps: ReconcileDeps, run: RunRecord, now: number): Promise<void> {
  const { record, events } = admitRun(run, 'admitted by the queue', now);
  if (!(await deps.store.save(record, run.version, events))) return;
  await announce(deps, run, record);
  const message = { kind: 'run', runId: run.runId } as const;
  await sendMessage(deps.sqs, deps.queueUrl, message, `${run.runId}/${record.version}`);
}

/** `list` says why a run waits; an unchanged reason is not written again. */
async function sayWhy(deps: ReconcileDeps, run: RunRecord, why: string): Promise<void> {
  if (run.reason === why) return;
  await deps.store.save({ ...run, reason: why, version: run.version + 1 }, run.version, []);
}
