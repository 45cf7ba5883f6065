import { sizesToAsk } from '../../../core/lifecycle/capacity-options';
import type { RunRecord } from '../../../core/lifecycle/record';
import { ENVIRONMENT_POOL, heldBy, type PoolLimit, type QueuedRun, type QueueUsage } from '../../../core/queue/order';
import type { QuotaNeed } from '../../../core/quota';
import { readDescriptor } from '../../shared/descriptors';
import { describeError } from '../../shared/errors';
import { queuedRun, runningRun, usesInstances } from '../../shared/queue-runs';
import type { ReconcileDeps } from '../deps';
import { othersUsage } from './others-usage';
import { hasLeft } from './preempt-runs';
import type { RunNeeds } from './run-needs';
import type { AwaitedRuns } from './waits-for';

/** Limit and use by others of each pool that the runs need, by quota name, and of the guardrail. */
export async function poolsOf(
  deps: ReconcileDeps,
  active: readonly RunRecord[],
  needs: readonly QuotaNeed[],
): Promise<Record<string, PoolLimit>> {
  const limits = await deps.limits.read(needs);
  const others = await usageOfOthers(deps, active);
  const pools: Record<string, PoolLimit> = {};
  for (const { name, code } of needs) {
    const limit = limits.get(name);
    const value = limit && 'value' in limit ? limit.value : null;
    const isUnread = (value === null && code !== undefined) || others === undefined;
    pools[name] = { limit: value, usedByOthers: others?.get(name) ?? 0, isUnread, name };
  }
  const limit = await maxConcurrentInstances(deps, active);
  return { ...pools, [ENVIRONMENT_POOL]: { limit, usedByOthers: 0, name: 'guardrails.maxConcurrentInstances' } };
}

/**
 * Undefined when it cannot be read. Waiting runs are then not held back: the service refuses what exceeds the quota, and the run waits
 * again.
 */
async function usageOfOthers(
  deps: ReconcileDeps,
  active: readonly RunRecord[],
): Promise<Map<string, number> | undefined> {
  try {
    const ours = active.flatMap((run) => run.attempt?.jobName ?? []);
    return await othersUsage(deps, new Set(ours));
  } catch (error) {
    deps.log('warn', 'what other jobs use could not be read', { error: describeError(error) });
    return undefined;
  }
}

async function maxConcurrentInstances(deps: ReconcileDeps, active: readonly RunRecord[]): Promise<number | null> {
  let failed: Record<string, unknown> | undefined;
  for (const team of new Set(active.map((run) => run.team))) {
    try {
      const { guardrails } = await readDescriptor(deps, team);
      return guardrails?.maxConcurrentInstances ?? null;
    } catch (error) {
      failed = { team, error: describeError(error) };
    }
  }
  if (!failed) return null;
  // A guardrail that cannot be read holds back all runs, because its purpose is to limit spending.
  deps.log('error', 'guardrails could not be read; nothing starts', failed);
  return 0;
}

export const heldNow = (holding: readonly RunRecord[], needs: RunNeeds): QueueUsage['held'] =>
  heldBy(holding.filter(usesInstances).map((run) => runningRun(run, needs.of(run))));

/** The entries of `after` whose runs have not completed. */
export const stillAwaited = ({ runId, after }: RunRecord, awaited: AwaitedRuns): string[] =>
  after.filter((wanted) => awaited.get(runId)?.get(wanted)?.state !== 'completed');

/** A run that was asked to leave for more instances holds the larger size already. */
export const heldOptionId = (run: RunRecord): string =>
  hasLeft(run) ? (run.reservation?.capacityOptionId ?? run.capacityOptionId) : run.capacityOptionId;

/** An elastic run takes smaller sizes too. */
export function queuedOnItsSizes(run: RunRecord, needs: RunNeeds): QueuedRun {
  const queued = queuedRun(run, needs.of(run));
  const [, ...others] = sizesToAsk(run);
  const optionIds = others.map(({ id }) => id);
  const smaller = needs.sizes(run, optionIds);
  return smaller.length > 0 ? { ...queued, smaller } : queued;
}
