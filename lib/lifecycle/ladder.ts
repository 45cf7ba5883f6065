import { findCapacityPrice } from '../catalog/prices/capacity-prices';
import { findPrice } from '../catalog/prices/prices';
import { hostCount, onInstances, requestedAlternativesOf, requestedGroupsOf, totalSteps } from '../spec/resolve-run';
import type { RunSpec } from '../spec/run-spec';
import type { Observed } from './observed';
import type { Attempt, Rung, RunPolicy, RunRecord } from './record';

/** Id of the first rung: the capacity that the run file names. */
export const AS_WRITTEN = 'as-written';
/** Id of the rung on demand that follows spot. */
export const ON_DEMAND = 'on-demand';

type OwnPrices = Readonly<Record<string, number>>;

/**
 * The ways a run may ask for capacity, in order. `compute.alternatives` are no rungs of ours: the service walks them itself
 * within one job (InstancePreferences). Of an elastic run the smaller sizes come first, then spot that found no capacity within
 * `limits.maxWaitSeconds` goes on-demand.
 * @param sizes of an elastic run, largest first
 * @param ownPrices negotiated USD per instance-hour of the environment
 */
export function ladderOf(
  run: RunSpec,
  region: string,
  ownPrices: OwnPrices = {},
  sizes: readonly number[] = [],
): Rung[] {
  const kinds = run.compute.capacity === 'spot' ? [AS_WRITTEN, ON_DEMAND] : [AS_WRITTEN];
  const counts = sizes.length > 0 ? sizes : [run.compute.instanceCount];
  const ids = kinds.flatMap((kind) =>
    counts.map((count) => (count === run.compute.instanceCount ? kind : `${kind}@${count}`)),
  );
  return ids.map((id) => rungOf(id, runOnRung(run, id), region, ownPrices));
}

function rungOf(id: string, run: RunSpec, region: string, ownPrices: OwnPrices): Rung {
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
  return {
    id,
    instances,
    usage,
    usdPerHour,
    ...(alternatives.length > 0 && { alternatives }),
    ...(usage === 'spot' && { expectedUsdPerHour: clusterPrice(instances, priceOf('spot-expected')) }),
  };
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

/** What the job of an attempt has: what the service chose, else what its rung asks for. Undefined for a rung that the run no longer has. */
export const instancesOfAttempt = (
  record: Pick<RunRecord, 'policy'>,
  { selected, rungId }: Pick<Attempt, 'selected' | 'rungId'>,
): Rung['instances'] | undefined => (selected ? [selected] : rungWithId(record, rungId)?.instances);

/** Kind of capacity and number of instances of a rung: `on-demand@4`; without a number as many as the run file says at most. */
export function partsOfRung(rungId: string): { kind: string; instances?: number } {
  const [kind = '', count] = rungId.split('@');
  return count === undefined ? { kind } : { kind, instances: Number(count) };
}

/**
 * An elastic run waits for the instances of one size this long before it asks for fewer. The service takes 1,800 s and more; older versions
 * of its model said 7,200.
 */
export const ELASTIC_PENDING_SECONDS = 7200;

/** The run as one rung asks for it. */
export function runOnRung(run: RunSpec, rungId: string): RunSpec {
  const { kind, instances } = partsOfRung(rungId);
  const sized = instances === undefined ? run : onInstances(run, instances);
  const { maxPendingSeconds = ELASTIC_PENDING_SECONDS } = run.limits;
  // Spot waits by its own limit, MaxWaitTimeInSeconds.
  const isSpot = run.compute.capacity === 'spot' && kind !== ON_DEMAND;
  const patient =
    run.compute.elastic && !isSpot
      ? {
          ...sized,
          limits: { ...sized.limits, maxPendingSeconds: Math.min(maxPendingSeconds, ELASTIC_PENDING_SECONDS) },
        }
      : sized;
  if (kind !== ON_DEMAND) return patient;
  return {
    ...patient,
    compute: { ...patient.compute, capacity: 'on-demand' },
    limits: { ...patient.limits, maxWaitSeconds: undefined },
  };
}

/** The rung of that id; undefined when the run's policy has none. */
export const rungWithId = ({ policy }: Pick<RunRecord, 'policy'>, rungId: string): Rung | undefined =>
  policy.ladder.find(({ id }) => id === rungId);

/** Instances of the rung, spare hosts included; 0 for a rung that the run does not have. */
export const instancesOn = (record: Pick<RunRecord, 'policy'>, rungId: string): number =>
  hostCount(rungWithId(record, rungId)?.instances ?? []);

/** The rungs of a run's kind of capacity that the queue may choose from: its present one, and the smaller ones after it. */
export function sizesToAsk({ policy: { ladder }, rungId }: Pick<RunRecord, 'policy' | 'rungId'>): Rung[] {
  const { kind } = partsOfRung(rungId);
  const at = ladder.findIndex((rung) => rung.id === rungId);
  return ladder.filter((rung, i) => i >= at && partsOfRung(rung.id).kind === kind);
}

/** The largest size of a run's kind of capacity. */
export const largestRung = ({ policy: { ladder }, rungId }: Pick<RunRecord, 'policy' | 'rungId'>): string =>
  ladder.find((rung) => partsOfRung(rung.id).kind === partsOfRung(rungId).kind)?.id ?? rungId;

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

/**
 * What `decide` must know of a run file, fixed when the run is made.
 * @param sizes of an elastic run, largest first
 */
export function policyOf(
  run: RunSpec,
  region: string,
  ownPrices: Readonly<Record<string, number>> = {},
  sizes: readonly number[] = [],
): RunPolicy {
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
    beats: run.kind === 'training' && run.distribution.contract === 'entrypoint' && !run.network.isolation,
    checkpointIntervalSeconds: interval,
    ladder: ladderOf(run, region, ownPrices, sizes),
    ...(run.compute.elastic && {
      pendingSeconds: Math.min(limits.maxPendingSeconds ?? ELASTIC_PENDING_SECONDS, ELASTIC_PENDING_SECONDS),
    }),
    ...(run.compute.keepAliveSeconds > 0 && { keepAliveSeconds: run.compute.keepAliveSeconds }),
    ...(run.compute.spareInstances > 0 && { spareInstances: run.compute.spareInstances }),
    ...(steps !== undefined && { totalSteps: steps }),
    ...(run.preemptible && { preemptible: true }),
    // An argument of the built-in trainer: own code may have one of that name that means something else.
    ...(builtin && run.code.arguments['loss-policy'] === 'rollback' && { lossPolicy: 'rollback' as const }),
  };
}
