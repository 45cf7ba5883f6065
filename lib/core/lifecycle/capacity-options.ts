import { findCapacityPrice, findPrice } from '../catalog/prices/prices';
import { hostCount, onInstances, requestedAlternativesOf, requestedGroupsOf, totalSteps } from '../config/resolve-run';
import type { RunSpec } from '../config/run-spec';
import type { Observed } from './observed';
import type { Attempt, CapacityOption, RunPolicy, RunRecord } from './record';

/** Id of the first capacity option: the capacity that the run file requests. */
export const AS_WRITTEN = 'as-written';
/** Id of the on-demand capacity option that follows spot. */
export const ON_DEMAND = 'on-demand';

type OwnPrices = Readonly<Record<string, number>>;

/**
 * The ways in which a run may ask for capacity, in order. `compute.alternatives` are not separate capacity options: the service tries them
 * itself within one job (InstancePreferences). For an elastic run the smaller sizes come first; a spot run that finds no capacity within
 * `limits.maxWaitSeconds` then switches to on-demand.
 * @param sizes of an elastic run, largest first
 * @param ownPrices negotiated USD per instance-hour of the environment
 */
export function listCapacityOptions(
  run: RunSpec,
  region: string,
  ownPrices: OwnPrices = {},
  sizes: readonly number[] = [],
): CapacityOption[] {
  const kinds = run.compute.capacity === 'spot' ? [AS_WRITTEN, ON_DEMAND] : [AS_WRITTEN];
  const counts = sizes.length > 0 ? sizes : [run.compute.instanceCount];
  const ids = kinds.flatMap((kind) =>
    counts.map((count) => (count === run.compute.instanceCount ? kind : `${kind}@${count}`)),
  );
  return ids.map((id) => capacityOption(id, runWithCapacityOption(run, id), region, ownPrices));
}

function capacityOption(id: string, run: RunSpec, region: string, ownPrices: OwnPrices): CapacityOption {
  const instances = requestedGroupsOf(run.compute).map(({ instanceType, instanceCount }) => ({
    instanceType,
    instanceCount,
  }));
  const usage = usageOf(run);
  const priceOf = (as: CapacityOption['usage'] | 'spot-expected') => (type: string) =>
    instancePrice(as, type, region, ownPrices);
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

function usageOf(run: RunSpec): CapacityOption['usage'] {
  if (run.kind === 'processing') return 'processing';
  return run.compute.capacity === 'on-demand' ? 'training' : run.compute.capacity;
}

/** USD per instance-hour. For spot this is the on-demand price, because the billed time that the service reports is already discounted. */
function instancePrice(
  usage: CapacityOption['usage'] | 'spot-expected',
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
  instances: CapacityOption['instances'],
  priceOf: (instanceType: string) => number | undefined,
): number | null {
  const prices = instances.map((i) => ({ count: i.instanceCount, price: priceOf(i.instanceType) }));
  return prices.reduce<number | null>(
    (sum, { count, price }) => (sum === null || price === undefined ? null : sum + count * price),
    0,
  );
}

/**
 * Instances of an attempt's job: what the service chose, otherwise what its capacity option requests. Undefined for a capacity option that
 * the run no longer has.
 */
export const instancesOfAttempt = (
  record: Pick<RunRecord, 'policy'>,
  { selected, capacityOptionId }: Pick<Attempt, 'selected' | 'capacityOptionId'>,
): CapacityOption['instances'] | undefined =>
  selected ? [selected] : findCapacityOption(record, capacityOptionId)?.instances;

/** Kind of capacity and number of instances of a capacity option: `on-demand@4`. Without a number, it is the maximum of the run file. */
export function parseCapacityOptionId(capacityOptionId: string): { kind: string; instances?: number } {
  const [kind = '', count] = capacityOptionId.split('@');
  return count === undefined ? { kind } : { kind, instances: Number(count) };
}

/**
 * How long an elastic run waits for the instances of one size before it asks for fewer. The service accepts 1,800 s and more; older
 * versions of its API model had a minimum of 7,200.
 */
const ELASTIC_PENDING_SECONDS = 7200;

const elasticPendingSeconds = ({ limits: { maxPendingSeconds = ELASTIC_PENDING_SECONDS } }: RunSpec): number =>
  Math.min(maxPendingSeconds, ELASTIC_PENDING_SECONDS);

/** The run spec with the capacity of one capacity option. */
export function runWithCapacityOption(run: RunSpec, capacityOptionId: string): RunSpec {
  const { kind, instances } = parseCapacityOptionId(capacityOptionId);
  const sized = instances === undefined ? run : onInstances(run, instances);
  // Spot has its own limit on waiting, MaxWaitTimeInSeconds.
  const isSpot = run.compute.capacity === 'spot' && kind !== ON_DEMAND;
  const patient =
    run.compute.elastic && !isSpot
      ? { ...sized, limits: { ...sized.limits, maxPendingSeconds: elasticPendingSeconds(run) } }
      : sized;
  if (kind !== ON_DEMAND) return patient;
  return {
    ...patient,
    compute: { ...patient.compute, capacity: 'on-demand' },
    limits: { ...patient.limits, maxWaitSeconds: undefined },
  };
}

/** The capacity option with that id; undefined when the run's policy has none. */
export const findCapacityOption = (
  { policy }: Pick<RunRecord, 'policy'>,
  capacityOptionId: string,
): CapacityOption | undefined => policy.capacityOptions.find(({ id }) => id === capacityOptionId);

/** Number of instances of the capacity option, including spare hosts; 0 for a capacity option that the run does not have. */
export const instancesOn = (record: Pick<RunRecord, 'policy'>, capacityOptionId: string): number =>
  hostCount(findCapacityOption(record, capacityOptionId)?.instances ?? []);

/** The same with the largest of the alternatives, any of which the service may choose. */
export const mostInstancesOn = (record: Pick<RunRecord, 'policy'>, capacityOptionId: string): number =>
  Math.max(
    instancesOn(record, capacityOptionId),
    ...(findCapacityOption(record, capacityOptionId)?.alternatives ?? []).map((one) => one.instanceCount),
  );

type OfRun = Pick<RunRecord, 'policy' | 'capacityOptionId'>;

/** The capacity options of the run's kind of capacity, largest first, and the place of the current one; -1 for one that it no longer has. */
export function optionsOfKind({ policy, capacityOptionId }: OfRun): { options: CapacityOption[]; at: number } {
  const { kind } = parseCapacityOptionId(capacityOptionId);
  const options = policy.capacityOptions.filter(({ id }) => parseCapacityOptionId(id).kind === kind);
  return { options, at: options.findIndex(({ id }) => id === capacityOptionId) };
}

/** The capacity options that the queue may choose from for the run's kind of capacity: the current one, and the smaller ones after it. */
export function sizesToAsk(record: OfRun): CapacityOption[] {
  const { options, at } = optionsOfKind(record);
  return options.slice(Math.max(0, at));
}

/** The largest size for the run's kind of capacity. */
export const largestOptionId = (record: OfRun): string =>
  optionsOfKind(record).options[0]?.id ?? record.capacityOptionId;

/** Capacity options on which no attempt can start now: the memory check rejects them, or they need more than the applied quota. */
export const unusableOptionIds = ({ optionsThatDoNotFit, optionsAboveQuota = [] }: Observed): string[] => [
  ...optionsThatDoNotFit,
  ...optionsAboveQuota,
];

/**
 * The capacity option to use after a capacity failure: the next usable one, wrapping around to the first; the same one when no other is
 * usable. Only a failure of class `capacity`, a used-up quota, and an option that memory or quota rule out change the option; every other
 * end of an attempt keeps it, and so does a person's resume. A spot run that went on demand stays there until that has no capacity either.
 */
export function optionAfterCapacityFailure(record: RunRecord, unusable: readonly string[]): string {
  const { capacityOptions } = record.policy;
  const at = capacityOptions.findIndex((r) => r.id === record.capacityOptionId);
  const others = [...capacityOptions.slice(at + 1), ...capacityOptions.slice(0, Math.max(0, at))];
  return others.find((r) => !unusable.includes(r.id))?.id ?? record.capacityOptionId;
}

const AUTO_INTERVAL_SECONDS = 1800;
const DEFAULT_CAPACITY_BUDGET_SECONDS = 7 * 86_400;

/**
 * The parts of a run file that `decide` needs, fixed when the run is created.
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
    writesHeartbeats: run.kind === 'training' && run.distribution.contract === 'entrypoint' && !run.network.isolation,
    checkpointIntervalSeconds: interval,
    capacityOptions: listCapacityOptions(run, region, ownPrices, sizes),
    ...(run.compute.elastic && { pendingSeconds: elasticPendingSeconds(run) }),
    keepAliveSeconds: run.compute.keepAliveSeconds,
    spareInstances: run.compute.spareInstances,
    ...(steps !== undefined && { totalSteps: steps }),
    preemptible: run.preemptible ?? false,
    // An argument of the built-in trainer. Custom code may have an argument of the same name with another meaning.
    lossPolicy: builtin && run.code.arguments['loss-policy'] === 'rollback' ? 'rollback' : 'stop',
  };
}
