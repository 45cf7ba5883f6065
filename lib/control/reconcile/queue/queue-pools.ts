import type { RunRecord } from '../../../core/lifecycle/record';
import { ENVIRONMENT_POOL, type PoolLimit } from '../../../core/queue/run';
import type { Limits, QuotaNeed } from '../../../core/quota';
import { readDescriptor } from '../../shared/descriptors';
import { describeError } from '../../shared/errors';
import type { ReconcileDeps } from '../deps';
import { othersUsage } from './others-usage';

/** Limit and use by others of each pool that the runs need, by quota name, and of the guardrail. */
export async function poolsOf(
  deps: ReconcileDeps,
  active: readonly RunRecord[],
  needs: readonly QuotaNeed[],
): Promise<Record<string, PoolLimit>> {
  const limits = await deps.limits.read(needs);
  const others = await usageOfOthers(deps, active);
  return poolLimits({ needs, limits, others, mostInstances: await maxConcurrentInstances(deps, active) });
}

/** What is known of the pools. */
export interface KnownPools {
  needs: readonly QuotaNeed[];
  limits: Limits;
  /** What jobs of others hold, by quota name; undefined when it could not be read. */
  others: ReadonlyMap<string, number> | undefined;
  /** `guardrails.maxConcurrentInstances`; null = no limit. */
  mostInstances: number | null;
}

/** The pools of one pass. Pure. */
export function poolLimits({ needs, limits, others, mostInstances }: KnownPools): Record<string, PoolLimit> {
  const pools: Record<string, PoolLimit> = {};
  for (const { name, code } of needs) {
    const limit = limits.get(name);
    const value = limit && 'value' in limit ? limit.value : null;
    const isUnread = (value === null && code !== undefined) || others === undefined;
    pools[name] = { limit: value, usedByOthers: others?.get(name) ?? 0, isUnread, name };
  }
  const name = 'guardrails.maxConcurrentInstances';
  return { ...pools, [ENVIRONMENT_POOL]: { limit: mostInstances, usedByOthers: 0, name } };
}

/** Names of the jobs of active runs, which the queue counts itself. */
export const ownJobs = (active: readonly RunRecord[]): Set<string> =>
  new Set(active.flatMap((run) => (run.attempt ? [run.attempt.jobName] : [])));

/**
 * Undefined when it cannot be read. Waiting runs are then not held back: the service refuses what exceeds the quota, and the run waits
 * again.
 */
async function usageOfOthers(
  deps: ReconcileDeps,
  active: readonly RunRecord[],
): Promise<Map<string, number> | undefined> {
  try {
    return await othersUsage(deps, ownJobs(active));
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
