import { instanceQuota } from '../../core/catalog/quotas';
import type { Pool } from '../../core/quota';
import { clusterOptions } from '../jobs/cluster';
import type { CurrentUsage } from '../quotas/limit-check';
import type { QuotaStore } from '../quotas/quota-store';
import { isTerminal, type JobStore } from './job-store';
import type { TrainingJob } from './training-job';

/** The quota pool in which a training job counts. */
export const kindOf = (job: TrainingJob): 'training' | 'spot' =>
  job.request.EnableManagedSpotTraining ? 'spot' : 'training';

/**
 * Instances that count in a pool: those of jobs that are not over, also while they wait for capacity or stop, and those in warm pools. A
 * job that has not selected one of its preferences yet counts with the first one.
 */
export function trainingUsage(jobs: readonly TrainingJob[], kind: Pool): CurrentUsage {
  const holding = jobs.filter((job) => !isTerminal(job) || job.warmPool?.status === 'Available');
  return sumUsage(holding.filter((job) => kindOf(job) === kind).flatMap(demandsOf));
}

function demandsOf(job: TrainingJob): { instanceType: string; count: number }[] {
  if (job.cluster) return job.cluster.instances.map(({ instanceType }) => ({ instanceType, count: 1 }));
  return clusterOptions(job.request.ResourceConfig ?? {})[0]?.demands ?? [];
}

/** Adds up instances by type. */
export function sumUsage(demands: readonly { instanceType: string; count: number }[]): CurrentUsage {
  const byType = new Map<string, number>();
  for (const { instanceType, count } of demands) byType.set(instanceType, (byType.get(instanceType) ?? 0) + count);
  return { byType, total: demands.reduce((sum, demand) => sum + demand.count, 0) };
}

/**
 * Instances kept after a job for the next job with the same request (facts: Developer Guide, train-warm-pools). Without warm pool quota no
 * pool is kept, and there is no message about it.
 */
export class WarmPools {
  private readonly timers = new Map<string, NodeJS.Timeout>();

  constructor(
    private readonly jobs: JobStore<TrainingJob>,
    private readonly quotas: QuotaStore,
    private readonly secondsPerLimitSecond: number,
  ) {}

  /** The job whose available instances `job` could use. */
  matching(job: TrainingJob): TrainingJob | undefined {
    if (!keepAlive(job)) return undefined;
    const same = signature(job);
    return this.jobs
      .in(job.account, job.region)
      .find((other) => other.warmPool?.status === 'Available' && signature(other) === same);
  }

  /** Takes over the matching pool. Returns whether there was one. */
  claim(job: TrainingJob): boolean {
    const pool = this.matching(job);
    if (pool) {
      this.end(pool, 'Reused');
      if (pool.warmPool) pool.warmPool.reusedBy = job.name;
    }
    if (keepAlive(job) && this.hasQuota(job)) job.warmPool = { status: 'InUse' };
    return pool !== undefined;
  }

  /** At the end of a job: keeps its instances after success, a stop, or an error of the user's code. */
  retain(job: TrainingJob): void {
    if (job.warmPool?.status !== 'InUse') return;
    if (!job.startedAt || /^(InternalServerError|CapacityError)/.test(job.failureReason ?? '') || !keepAlive(job)) {
      job.warmPool = undefined;
      return;
    }
    job.warmPool = { status: 'Available', availableAt: Date.now() };
    this.endAfter(job, keepAlive(job));
  }

  /** UpdateTrainingJob: a new period is counted from when the pool became available; 0 ends it. */
  setKeepAlive(job: TrainingJob, seconds: number): void {
    job.request = {
      ...job.request,
      ResourceConfig: { ...job.request.ResourceConfig, KeepAlivePeriodInSeconds: seconds },
    };
    if (job.warmPool?.status === 'Available') this.endAfter(job, seconds);
  }

  close(): void {
    for (const timer of this.timers.values()) clearTimeout(timer);
  }

  private endAfter(job: TrainingJob, seconds: number): void {
    clearTimeout(this.timers.get(job.arn));
    const until = (job.warmPool?.availableAt ?? Date.now()) + seconds * 1000 * this.secondsPerLimitSecond;
    const left = until - Date.now();
    if (left <= 0) this.end(job, 'Terminated');
    else this.timers.set(job.arn, setTimeout(() => this.end(job, 'Terminated'), left).unref());
  }

  private end(job: TrainingJob, status: 'Reused' | 'Terminated'): void {
    clearTimeout(this.timers.get(job.arn));
    const since = job.warmPool?.availableAt ?? Date.now();
    job.warmPool = { ...job.warmPool, status, retainedSeconds: Math.round((Date.now() - since) / 1000) };
  }

  private hasQuota(job: TrainingJob): boolean {
    const type = job.request.ResourceConfig?.InstanceType ?? '';
    const row = this.quotas.findByName(job.account, job.region, instanceQuota(type, 'warm-pool').name);
    const kept = this.jobs.in(job.account, job.region).filter(({ warmPool }) => warmPool?.status === 'Available');
    const held = sumUsage(kept.flatMap(demandsOf)).byType.get(type) ?? 0;
    return (row?.value ?? 0) >= held + (job.request.ResourceConfig?.InstanceCount ?? 0);
  }
}

const keepAlive = (job: TrainingJob) => job.request.ResourceConfig?.KeepAlivePeriodInSeconds ?? 0;

/** The fields that must be equal for one job to run on the instances of another. */
function signature({ request }: TrainingJob): string {
  const config = request.ResourceConfig;
  return JSON.stringify([
    request.RoleArn,
    config?.InstanceType,
    config?.InstanceCount,
    config?.VolumeKmsKeyId,
    config?.VolumeSizeInGB,
    request.VpcConfig?.SecurityGroupIds,
    request.VpcConfig?.Subnets,
    request.EnableInterContainerTrafficEncryption ?? false,
    request.EnableNetworkIsolation ?? false,
  ]);
}
