import { sizesToAsk } from '../../../core/lifecycle/capacity-options';
import { isInDoubt } from '../../../core/lifecycle/phases/launch';
import type { RunRecord } from '../../../core/lifecycle/record';
import { type Admission, admit, type QueueInput } from '../../../core/queue/admit';
import {
  advanceUsage,
  ENVIRONMENT_POOL,
  heldBy,
  NO_USAGE,
  type PoolLimit,
  type QueuedRun,
  type QueueUsage,
} from '../../../core/queue/usage';
import type { Limits, QuotaNeed } from '../../../core/quota';
import { readDescriptor } from '../../shared/descriptors';
import { describeError } from '../../shared/errors';
import { queuedRun, runningRun, usesInstances } from '../../shared/queue-runs';
import type { ReconcileDeps } from '../deps';
import { holdOf, othersUsage, type TeamHolds } from './others-usage';
import { hasLeft, type ReservationChange, reservationChanges } from './preempt-runs';
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
  return poolLimits({ needs, limits, others, mostInstances: await maxConcurrentInstances(deps, active) });
}

interface KnownPools {
  needs: readonly QuotaNeed[];
  limits: Limits;
  /** What jobs of others hold, by quota name; undefined when it could not be read. */
  others: ReadonlyMap<string, number> | undefined;
  /** `guardrails.maxConcurrentInstances`; null = no limit. */
  mostInstances: number | null;
}

/** The pools of one pass. Pure. */
function poolLimits({ needs, limits, others, mostInstances }: KnownPools): Record<string, PoolLimit> {
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

/** Everything that a pass over the queue has read. */
interface PassFacts {
  waiting: readonly RunRecord[];
  /** Runs that hold capacity, or are about to. */
  holding: readonly RunRecord[];
  needs: RunNeeds;
  /** What the queue's item says that teams have used; undefined when it could not be read. */
  usage: QueueUsage | undefined;
  pools: Readonly<Record<string, PoolLimit>>;
  awaited: AwaitedRuns;
  holds: TeamHolds;
  /** When everything was read, epoch milliseconds. */
  now: number;
}

interface PassPlan {
  input: QueueInput;
  admission: Admission;
  reservations: ReservationChange[];
}

/** The decisions of one pass. Pure: the same facts, the same plan. */
export function planPass({ shares }: Pick<ReconcileDeps, 'shares'>, facts: PassFacts): PassPlan {
  const { waiting, holding, needs, pools, awaited, holds, now } = facts;
  const running = holding.map((run) => runningRun(run, needs.of(run, heldOptionId(run))));
  const queued = waiting.map((run) => ({
    ...queuedOnItsSizes(run, needs),
    ...holdOf(run, holds),
    after: stillAwaited(run, awaited),
  }));
  const usage = advanceUsage(facts.usage ?? NO_USAGE, heldNow(holding, needs), now);
  const input: QueueInput = { waiting: queued, running, pools, shares, usage, now };
  const admission = admit(input);
  return { input, admission, reservations: reservationChanges(input, admission, holding, needs) };
}

/** What teams hold now. */
export const heldNow = (holding: readonly RunRecord[], needs: RunNeeds): QueueUsage['held'] =>
  heldBy(holding.filter(usesInstances).map((run) => runningRun(run, needs.of(run))));

/** The entries of `after` whose runs have not completed. */
const stillAwaited = ({ runId, after }: RunRecord, awaited: AwaitedRuns): string[] =>
  after.filter((wanted) => awaited.get(runId)?.get(wanted)?.state !== 'completed');

/** A run that was asked to leave for more instances holds the larger size already. */
const heldOptionId = (run: RunRecord): string =>
  hasLeft(run) ? (run.reservation?.capacityOptionId ?? run.capacityOptionId) : run.capacityOptionId;

/** An elastic run takes smaller sizes too, unless a job of its attempt may exist, which has a size. */
function queuedOnItsSizes(run: RunRecord, needs: RunNeeds): QueuedRun {
  const queued = queuedRun(run, needs.of(run));
  if (run.attempt && isInDoubt(run.attempt)) return queued;
  const smaller = needs.sizes(
    run,
    sizesToAsk(run)
      .slice(1)
      .map((option) => option.id),
  );
  return smaller.length > 0 ? { ...queued, smaller } : queued;
}
