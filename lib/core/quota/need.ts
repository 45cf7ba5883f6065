import { hasLocalNvme } from '../catalog/instances/instances';
import { generalQuota, instanceQuota, QUOTA, type QuotaRef, type QuotaUsage } from '../catalog/quotas';
import type { QuotaRequirement } from '../config/environment-file';
import { hostCount, requestedAlternativesOf, requestedGroupsOf } from '../config/resolve-run';
import { DEFAULT_VOLUME_GIB } from '../config/run/compute';
import type { RunSpec } from '../config/run-spec';

/** One quota that a run or an environment requires, and the amount. */
export interface QuotaNeed extends QuotaRef {
  needed: number;
  unit: 'instances' | 'seconds' | 'GiB';
  /** `pool`: current usage counts against the limit. `per-job`: the limit applies to each job separately. */
  kind: 'pool' | 'per-job';
  /** The option that requires it, as the user wrote it: `compute.instanceCount`. */
  wantedBy: string;
  /**
   * Whether the job can start without it: if the quota is insufficient, SageMaker keeps no warm pool. @default - required
   * https://docs.aws.amazon.com/sagemaker/latest/dg/train-warm-pools-resource-limits.html
   */
  isOptional?: true;
}

/** Quotas on processing jobs that have no name in `QUOTA`. Source: docs/facts/quotas-instances-prices.md. */
const PROCESSING = { perJob: 'L-A5D63399', runtime: 'L-EA47BDD3', volume: 'L-D7BEE2A3' } as const;

/** Use of instances by a job that has begun, or is about to. */
export type Pool = 'training' | 'spot' | 'processing';

/** Codes of the quotas that do not depend on an instance type, by pool. */
export const TOTALS: Readonly<Record<Pool, { across: string; perJob: string; runtime: string; volume: string }>> = {
  training: {
    across: QUOTA.instancesAcrossTraining,
    perJob: QUOTA.instancesPerTraining,
    runtime: QUOTA.longestRunSeconds,
    volume: QUOTA.ebsVolumeGiB,
  },
  spot: {
    across: QUOTA.instancesAcrossSpot,
    perJob: QUOTA.instancesPerSpot,
    runtime: QUOTA.longestRunSeconds,
    volume: QUOTA.ebsVolumeGiB,
  },
  processing: { across: QUOTA.instancesAcrossProcessing, ...PROCESSING },
};

/** All quotas that one run requires (facts: SageMaker quotas that gate a job), including those of alternative types. */
export function runQuotaNeeds(run: RunSpec): QuotaNeed[] {
  const pool = poolOf(run);
  const hosts = [...instancesByType(run)];
  const total = mostInstances(run);
  const volume = { needed: run.compute.volumeSizeGiB ?? DEFAULT_VOLUME_GIB, wantedBy: 'compute.volumeSizeGiB' };
  const usages: QuotaUsage[] = run.compute.keepAliveSeconds > 0 ? [pool, 'warm-pool'] : [pool];
  return [
    ...usages.flatMap((usage) =>
      hosts.map(([type, requested]) => ({
        ...instances(instanceQuota(type, usage), requested),
        ...(usage === 'warm-pool' && { isOptional: true as const }),
      })),
    ),
    instances(generalQuota(TOTALS[pool].across), total),
    perJob(TOTALS[pool].perJob, 'instances', total),
    perJob(TOTALS[pool].runtime, 'seconds', {
      needed: run.limits.maxRuntimeSeconds,
      wantedBy: 'limits.maxRuntimeSeconds',
    }),
    // Types with instance store have no EBS volume.
    ...(hosts.every(([type]) => hasLocalNvme(type)) ? [] : [perJob(TOTALS[pool].volume, 'GiB', volume)]),
  ];
}

/** The needs without which a job cannot start. */
export const neededToStart = <T extends Pick<QuotaNeed, 'isOptional'>>(needs: readonly T[]): T[] =>
  needs.filter((need) => !need.isOptional);

/**
 * Needs of an environment: the sum of all entries of `quotas.require`, and each of its runs separately, including warm pools.
 * @param maxInstancesPerRun guardrail; a larger required count is divided among several jobs
 */
export function environmentQuotaNeeds(
  required: readonly QuotaRequirement[],
  runs: readonly RunSpec[] = [],
  maxInstancesPerRun = Number.POSITIVE_INFINITY,
): QuotaNeed[] {
  const beside = sumNeeds(required.flatMap((r, i) => requirementNeeds(r, `quotas.require[${i}]`, maxInstancesPerRun)));
  // The runs need not be concurrent.
  return merge([...beside, ...runs.flatMap(runQuotaNeeds).map(({ isOptional: _, ...need }) => need)], larger);
}

/** Needs of concurrent runs: pools are added, limits per job are not. */
function sumNeeds(needs: readonly QuotaNeed[]): QuotaNeed[] {
  return merge(needs, (a, b) => {
    if (a.kind === 'per-job') return larger(a, b);
    return { ...a, needed: a.needed + b.needed, wantedBy: `${a.wantedBy}, ${b.wantedBy}` };
  });
}

function merge(needs: readonly QuotaNeed[], join: (a: QuotaNeed, b: QuotaNeed) => QuotaNeed): QuotaNeed[] {
  const byName = new Map<string, QuotaNeed>();
  for (const need of needs) {
    const before = byName.get(need.name);
    byName.set(need.name, before ? join(before, need) : need);
  }
  return [...byName.values()];
}

function requirementNeeds(required: QuotaRequirement, wantedBy: string, maxPerRun: number): QuotaNeed[] {
  const { instanceType, count, usage } = required;
  const type = instances(instanceQuota(instanceType, usage), { needed: count, wantedBy });
  // A warm pool counts against the training quota and requires no additional instance.
  if (usage === 'warm-pool') return [type];
  return [
    type,
    instances(generalQuota(TOTALS[usage].across), { needed: count, wantedBy }),
    perJob(TOTALS[usage].perJob, 'instances', { needed: Math.min(count, maxPerRun), wantedBy }),
  ];
}

/** Number of instances, seconds or GiB, and the option of the run file that requires them. */
type Requested = Pick<QuotaNeed, 'needed' | 'wantedBy'>;

const instances = (quota: QuotaRef, { needed, wantedBy }: Requested): QuotaNeed => {
  return { ...quota, needed, unit: 'instances', kind: 'pool', wantedBy };
};

const perJob = (code: string, unit: QuotaNeed['unit'], { needed, wantedBy }: Requested): QuotaNeed => {
  return { ...generalQuota(code), needed, unit, kind: 'per-job', wantedBy };
};

function poolOf(run: RunSpec): Pool {
  if (run.kind === 'processing') return 'processing';
  return run.compute.capacity === 'spot' ? 'spot' : 'training';
}

function wantedBy({ compute }: RunSpec): string {
  if (compute.instanceGroups.length > 0) return 'compute.instanceGroups';
  return compute.spareInstances > 0 ? 'compute.instanceCount, compute.spareInstances' : 'compute.instanceCount';
}

/** The needs of each alternative type: the service may start any of them instead of the first choice. */
function alternativeNeeds({ compute }: RunSpec): (Requested & { instanceType: string })[] {
  const spares = compute.spareInstances > 0 ? ', compute.spareInstances' : '';
  return requestedAlternativesOf(compute).map(({ instanceType, instanceCount }, i) => {
    const isCounted = compute.alternatives[i]?.instanceCount !== undefined;
    const written = `compute.alternatives[${i}]${isCounted ? '.instanceCount' : ''}`;
    return { instanceType, needed: instanceCount, wantedBy: written + spares };
  });
}

/** Maximum number of instances of each type over all alternatives. */
function instancesByType(run: RunSpec): Map<string, Requested> {
  const requested = new Map<string, Requested>();
  for (const { instanceType, instanceCount } of requestedGroupsOf(run.compute)) {
    const needed = (requested.get(instanceType)?.needed ?? 0) + instanceCount;
    requested.set(instanceType, { needed, wantedBy: wantedBy(run) });
  }
  for (const { instanceType, ...other } of alternativeNeeds(run))
    requested.set(instanceType, larger(requested.get(instanceType), other));
  return requested;
}

function mostInstances(run: RunSpec): Requested {
  const first = { needed: hostCount(requestedGroupsOf(run.compute)), wantedBy: wantedBy(run) };
  return alternativeNeeds(run).reduce<Requested>(larger, first);
}

const larger = <T extends Requested>(first: T | undefined, other: T): T =>
  first && first.needed >= other.needed ? first : other;
