import { admitRun } from '../../lifecycle/intent';
import { runOnRung } from '../../lifecycle/ladder';
import type { RunRecord } from '../../lifecycle/record';
import { admit } from '../../queue/admit';
import { ENVIRONMENT_POOL, type PoolLimit, type PoolNeeds } from '../../queue/run';
import { type QuotaNeed, runQuotaNeeds } from '../../quota';
import { readDescriptor } from '../shared/descriptors';
import { describeError } from '../shared/errors';
import { sendMessage } from '../shared/queue';
import { holdsCapacity, isQueued, queuedRun, runningRun } from '../shared/queue-runs';
import { announce } from './act';
import type { ReconcileDeps } from './deps';
import { othersUsage } from './others-usage';

/**
 * Lets waiting runs start, over all teams. `changed` is a run that the index of active runs may not show yet. Messages of this kind share one group of the FIFO queue, so that two passes never
 * count the same free instances; the service's own limit stands behind it in any case.
 */
export async function admitRuns(deps: ReconcileDeps, changed?: string): Promise<void> {
  const active = await newest(deps, await deps.store.active(), changed);
  const waiting = active.filter(isQueued);
  if (waiting.length === 0) return;
  const holding = active.filter(holdsCapacity);
  const needs = await needsOf(deps, [...waiting, ...holding]);
  const instances = (run: RunRecord) => runningRun(run, {}).instances;
  const poolNeeds = (run: RunRecord): PoolNeeds => ({
    ...Object.fromEntries((needs.get(run.runId) ?? []).map((n) => [n.name, n.needed])),
    [ENVIRONMENT_POOL]: instances(run),
  });
  const now = deps.now().getTime();
  const { admitted, waits } = admit({
    waiting: waiting.map((run) => queuedRun(run, poolNeeds(run))),
    running: holding.map((run) => runningRun(run, poolNeeds(run))),
    pools: await poolsOf(deps, active, [...needs.values()].flat()),
    shares: deps.shares,
    completed: await completedOf(deps, waiting),
    now,
  });
  for (const run of waiting) {
    const why = waits.find((w) => w.runId === run.runId)?.why;
    await apart(deps, run, async () => {
      if (admitted.includes(run.runId)) await letStart(deps, run, now);
      if (why) await sayWhy(deps, run, why);
    });
  }
}

/** What goes wrong with one run stays with it: the next pass of the tick tries it again. */
async function apart<T>(deps: ReconcileDeps, run: RunRecord, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    deps.log('error', 'a run was passed over by the queue', { runId: run.runId, error: describeError(error) });
    return undefined;
  }
}

/** The index lags behind; what is decided on is what is written. A run that cannot be read counts as the index shows it, and does not start. */
async function newest(deps: ReconcileDeps, listed: readonly RunRecord[], changed?: string): Promise<RunRecord[]> {
  const unread = (run: RunRecord): RunRecord => ({ ...run, confirmed: false });
  const found = listed.map((run) => apart(deps, run, async () => ({ run: await deps.store.find(run.runId) })));
  const pairs = (await Promise.all(found)).map((seen, i) => (seen ? seen.run : listed[i] && unread(listed[i])));
  const isListed = listed.some((run) => run.runId === changed);
  const late = changed === undefined || isListed ? undefined : await deps.store.find(changed);
  return [...pairs, late].filter((run) => run !== undefined);
}

/** Pools of each run, by quota name. A run whose intent cannot be read needs nothing that we know of, and the service decides. */
async function needsOf(deps: ReconcileDeps, runs: readonly RunRecord[]): Promise<Map<string, QuotaNeed[]>> {
  const pairs = await Promise.all(
    runs.map(async (run): Promise<[string, QuotaNeed[]]> => {
      const intent = await apart(deps, run, () => deps.store.findIntent(run.runId));
      const all = intent ? runQuotaNeeds(runOnRung(intent.spec, run.rungId)) : [];
      return [run.runId, all.filter((need) => need.kind === 'pool')];
    }),
  );
  return new Map(pairs);
}

async function poolsOf(
  deps: ReconcileDeps,
  active: readonly RunRecord[],
  needs: readonly QuotaNeed[],
): Promise<Record<string, PoolLimit>> {
  const limits = await deps.limits.read(needs);
  const others = await usageOfOthers(deps, active);
  const pools: Record<string, PoolLimit> = {};
  for (const { name } of needs) {
    const limit = limits.get(name);
    const value = limit && 'value' in limit ? limit.value : null;
    pools[name] = { limit: value, usedByOthers: others.get(name) ?? 0, name };
  }
  const most = await maxConcurrentInstances(deps, active);
  return { ...pools, [ENVIRONMENT_POOL]: { limit: most, usedByOthers: 0, name: 'guardrails.maxConcurrentInstances' } };
}

/** When it cannot be read nothing is held against the waiting: the service refuses what is too much, and the run waits again. */
async function usageOfOthers(deps: ReconcileDeps, active: readonly RunRecord[]): Promise<Map<string, number>> {
  try {
    const ours = active.flatMap((run) => (run.attempt ? [run.attempt.jobName] : []));
    return await othersUsage(deps.sagemaker, new Set(ours));
  } catch (error) {
    deps.log('warn', 'what other jobs use could not be read', { error: describeError(error) });
    return new Map();
  }
}

async function maxConcurrentInstances(deps: ReconcileDeps, active: readonly RunRecord[]): Promise<number | null> {
  const team = active[0]?.team;
  if (team === undefined) return null;
  try {
    const { guardrails } = await readDescriptor(deps, team);
    return guardrails?.maxConcurrentInstances ?? null;
  } catch (error) {
    // A guardrail that cannot be read holds everybody back: it is there to bound what is spent.
    deps.log('error', 'guardrails could not be read; nothing starts', { team, error: describeError(error) });
    return 0;
  }
}

/** Which of the runs that others wait for are completed: ids, and `latest:<name>` by the newest run of that name. */
async function completedOf(deps: ReconcileDeps, waiting: readonly RunRecord[]): Promise<Set<string>> {
  const done = new Set<string>();
  for (const run of waiting) {
    for (const wanted of run.after) {
      const other = await findWanted(deps, run, wanted);
      if (other?.state === 'completed') done.add(wanted);
    }
  }
  return done;
}

async function findWanted(deps: ReconcileDeps, run: RunRecord, wanted: string): Promise<RunRecord | undefined> {
  if (!wanted.startsWith('latest:')) return deps.store.find(wanted);
  const name = wanted.slice('latest:'.length);
  const runs = await deps.store.ofTeam(run.team, 200);
  return runs.find((other) => other.name === name && other.runId !== run.runId);
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
