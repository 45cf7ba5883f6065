import { findPrice } from '../catalog/prices';
import { requestedGroupsOf, totalSteps } from '../spec/resolve-run';
import type { RunSpec } from '../spec/run-spec';
import type { Rung, RunPolicy, RunRecord } from './record';

export const AS_WRITTEN = 'as-written';
export const ON_DEMAND = 'on-demand';

/**
 * The ways a run may ask for capacity, in order. `compute.alternatives` are no rungs of ours: the service walks them itself
 * within one job (InstancePreferences). Spot that found no capacity within `limits.maxWaitSeconds` goes on-demand.
 * @param ownPrices negotiated USD per instance-hour of the environment
 */
export function ladderOf(run: RunSpec, region: string, ownPrices: Readonly<Record<string, number>> = {}): Rung[] {
  const instances = requestedGroupsOf(run.compute).map(({ instanceType, instanceCount }) => ({
    instanceType,
    instanceCount,
  }));
  const usdPerHour = clusterPrice(instances, region, ownPrices);
  const asWritten: Rung = { id: AS_WRITTEN, instances, usage: usageOf(run), usdPerHour };
  if (run.compute.capacity !== 'spot') return [asWritten];
  return [asWritten, { id: ON_DEMAND, instances, usage: 'training', usdPerHour }];
}

function usageOf(run: RunSpec): Rung['usage'] {
  if (run.kind === 'processing') return 'processing';
  return run.compute.capacity === 'on-demand' ? 'training' : run.compute.capacity;
}

function clusterPrice(
  instances: Rung['instances'],
  region: string,
  ownPrices: Readonly<Record<string, number>>,
): number | null {
  const prices = instances.map((i) => ({
    count: i.instanceCount,
    price: findPrice(i.instanceType, region, ownPrices)?.usdPerHour,
  }));
  return prices.reduce<number | null>(
    (sum, { count, price }) => (sum === null || price === undefined ? null : sum + count * price),
    0,
  );
}

/** The run as one rung asks for it. */
export function runOnRung(run: RunSpec, rungId: string): RunSpec {
  if (rungId !== ON_DEMAND) return run;
  return {
    ...run,
    compute: { ...run.compute, capacity: 'on-demand' },
    limits: { ...run.limits, maxWaitSeconds: undefined },
  };
}

/** The rung after a capacity failure: the next one that the memory check lets pass, else the same again. */
export function rungAfterCapacityFailure(record: RunRecord, rungsThatDoNotFit: readonly string[]): string {
  const at = record.policy.ladder.findIndex((r) => r.id === record.rungId);
  const next = record.policy.ladder.slice(at + 1).find((r) => !rungsThatDoNotFit.includes(r.id));
  return next?.id ?? record.rungId;
}

const AUTO_INTERVAL_SECONDS = 1800;
const DEFAULT_CAPACITY_BUDGET_SECONDS = 7 * 86_400;

/** What `decide` must know of a run file, fixed when the run is made. */
export function policyOf(run: RunSpec, region: string, ownPrices: Readonly<Record<string, number>> = {}): RunPolicy {
  const { checkpoints, limits, progress } = run;
  const steps = totalSteps(run.training);
  const builtin = run.code.builtin !== undefined;
  const interval = checkpoints.intervalMinutes === 'auto' ? AUTO_INTERVAL_SECONDS : checkpoints.intervalMinutes * 60;
  const isOnS3 = checkpoints.mode === 'direct' || checkpoints.mode === 'managed';
  return {
    maxAttempts: limits.maxAttempts,
    maxRuntimeSeconds: limits.maxRuntimeSeconds,
    maxCostUsd: limits.maxCostUsd ?? null,
    capacityBudgetSeconds: limits.maxPendingSeconds ?? DEFAULT_CAPACITY_BUDGET_SECONDS,
    startupMinutes: progress.startupMinutes,
    silenceMinutes: progress.silenceMinutes,
    seesSteps: builtin || progress.stepRegex !== undefined,
    seesCommits: isOnS3 && (builtin || checkpoints.committedMarker !== undefined),
    checkpointIntervalSeconds: interval,
    ladder: ladderOf(run, region, ownPrices),
    ...(run.compute.spareInstances > 0 && { spareInstances: run.compute.spareInstances }),
    ...(steps !== undefined && { totalSteps: steps }),
    // An argument of the built-in trainer: own code may have one of that name that means something else.
    ...(builtin && run.code.arguments['loss-policy'] === 'rollback' && { lossPolicy: 'rollback' as const }),
  };
}
