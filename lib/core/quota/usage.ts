import { generalQuota, instanceQuota, QUOTA, type QuotaUsage } from '../catalog/quotas';

/** One SageMaker job or warm pool, from Describe. */
export interface JobInstances {
  kind: 'training' | 'processing';
  /** TrainingJobStatus or ProcessingJobStatus. */
  status: string;
  spot: boolean;
  instances: readonly { instanceType: string; count: number }[];
  /** WarmPoolStatus.Status of a job that has ended. */
  warmPoolStatus?: string;
}

/** A job uses its quota from the request on, even while it waits for capacity; `Stopping` is counted to be safe. */
const HOLDING = new Set(['InProgress', 'Stopping']);

const ACROSS: Readonly<Record<'training' | 'spot' | 'processing', string>> = {
  training: QUOTA.instancesAcrossTraining,
  spot: QUOTA.instancesAcrossSpot,
  processing: QUOTA.instancesAcrossProcessing,
};

/** Usage by quota name. Warm pools count against the training quota and their own quota (facts: "How SageMaker counts usage"). */
export function quotaUsage(jobs: readonly JobInstances[]): Map<string, number> {
  const used = new Map<string, number>();
  const add = (name: string, count: number) => used.set(name, (used.get(name) ?? 0) + count);
  for (const job of jobs) {
    const pool = poolOf(job);
    if (!pool) continue;
    for (const { instanceType, count } of job.instances) {
      for (const usage of pool.usages) add(instanceQuota(instanceType, usage).name, count);
      add(generalQuota(ACROSS[pool.total]).name, count);
    }
  }
  return used;
}

function poolOf(job: JobInstances): { usages: QuotaUsage[]; total: keyof typeof ACROSS } | undefined {
  if (HOLDING.has(job.status)) {
    const usage = job.kind === 'processing' ? 'processing' : job.spot ? 'spot' : 'training';
    return { usages: [usage], total: usage };
  }
  return job.warmPoolStatus === 'Available' ? { usages: ['training', 'warm-pool'], total: 'training' } : undefined;
}
