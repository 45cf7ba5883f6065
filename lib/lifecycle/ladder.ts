import { findCapacityPrice } from '../catalog/capacity-prices';
import { findPrice } from '../catalog/prices';
import { requestedAlternativesOf, requestedGroupsOf, totalSteps } from '../spec/resolve-run';
import type { RunSpec } from '../spec/run-spec';
import type { Observed } from './observed';
import type { Rung, RunPolicy, RunRecord } from './record';

export const AS_WRITTEN = 'as-written';
export const ON_DEMAND = 'on-demand';

type OwnPrices = Readonly<Record<string, number>>;

/**
 * The ways a run may ask for capacity, in order. `compute.alternatives` are no rungs of ours: the service walks them itself
 * within one job (InstancePreferences). Spot that found no capacity within `limits.maxWaitSeconds` goes on-demand.
 * @param ownPrices negotiated USD per instance-hour of the environment
 */
export function ladderOf(run: RunSpec, region: string, ownPrices: OwnPrices = {}): Rung[] {
  const instances = requestedGroupsOf(run.compute).map(({ instanceType, instanceCount }) => ({
    instanceType,
    instanceCount,
  }));
  const usage = usageOf(run);
  const priceOf = (as: Rung['usage'] | 'spot-expected') => (type: string) => instancePrice(as, type, region, ownPrices);
  const usdPerHour = clusterPrice(instances, priceOf(usage));
  const alternatives = alternativesOf(run).map(({ usage: as, ...cluster }) => ({
    ...cluster,
    usdPerHour: clusterPrice([cluster], priceOf(as)),
  }));
  const asWritten: Rung = {
    id: AS_WRITTEN,
    instances,
    usage,
    usdPerHour,
    ...(alternatives.length > 0 && { alternatives }),
    ...(usage === 'spot' && { expectedUsdPerHour: clusterPrice(instances, priceOf('spot-expected')) }),
  };
  if (run.compute.capacity !== 'spot') return [asWritten];
  return [asWritten, { id: ON_DEMAND, instances, usage: 'training', usdPerHour }];
}

function alternativesOf({ compute }: RunSpec) {
  return requestedAlternativesOf(compute).map(({ instanceType, instanceCount, trainingPlanArn }) => ({
    instanceType,
    instanceCount,
    usage: trainingPlanArn ? ('training-plan' as const) : ('training' as const),
  }));
}

function usageOf(run: RunSpec): Rung['usage'] {
  if (run.kind === 'processing') return 'processing';
  return run.compute.capacity === 'on-demand' ? 'training' : run.compute.capacity;
}

/** USD per instance-hour. The time that the service bills for spot is discounted already, so that its price is the on-demand one. */
function instancePrice(
  usage: Rung['usage'] | 'spot-expected',
  instanceType: string,
  region: string,
  own: OwnPrices,
): number | undefined {
  if (usage === 'spot-expected') return findCapacityPrice('spot', instanceType, region)?.usdPerHour;
  const plan = usage === 'training-plan' && own[instanceType] === undefined;
  const seen = plan ? findCapacityPrice('training-plan', instanceType, region) : undefined;
  return (seen ?? findPrice(instanceType, region, own))?.usdPerHour;
}

function clusterPrice(
  instances: Rung['instances'],
  priceOf: (instanceType: string) => number | undefined,
): number | null {
  const prices = instances.map((i) => ({ count: i.instanceCount, price: priceOf(i.instanceType) }));
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

/** Rungs that no attempt can start on now: the memory check refuses them, or their needs are above the applied quota. */
export const unusableRungs = ({ rungsThatDoNotFit, rungsAboveQuota = [] }: Observed): string[] => [
  ...rungsThatDoNotFit,
  ...rungsAboveQuota,
];

/** The rung after a capacity failure: the next usable one, the first again after the last; the same one where no other is usable. */
export function rungAfterCapacityFailure(record: RunRecord, unusable: readonly string[]): string {
  const { ladder } = record.policy;
  const at = ladder.findIndex((r) => r.id === record.rungId);
  const others = [...ladder.slice(at + 1), ...ladder.slice(0, Math.max(0, at))];
  return others.find((r) => !unusable.includes(r.id))?.id ?? record.rungId;
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
    keepsCheckpoints: checkpoints.mode !== 'none',
    beats: run.kind === 'training' && run.distribution.contract !== 'toolkit' && !run.network.isolation,
    checkpointIntervalSeconds: interval,
    ladder: ladderOf(run, region, ownPrices),
    ...(run.compute.keepAliveSeconds > 0 && { keepAliveSeconds: run.compute.keepAliveSeconds }),
    ...(run.compute.spareInstances > 0 && { spareInstances: run.compute.spareInstances }),
    ...(steps !== undefined && { totalSteps: steps }),
    ...(run.preemptible && { preemptible: true }),
    // An argument of the built-in trainer: own code may have one of that name that means something else.
    ...(builtin && run.code.arguments['loss-policy'] === 'rollback' && { lossPolicy: 'rollback' as const }),
  };
}
