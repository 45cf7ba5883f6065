import { clusterOptions } from '../jobs/cluster';
import type { CurrentUsage, UsageKind } from '../quotas/limit-check';
import { isTerminal, type TrainingJob } from './training-job';

/** The quota pool in which a training job counts. */
export const kindOf = (job: TrainingJob): 'training' | 'spot' =>
  job.request.EnableManagedSpotTraining ? 'spot' : 'training';

/**
 * Instances that count in a pool: those of jobs that are not over, also while they wait for capacity or stop, and those in warm pools. A
 * job that has not selected one of its preferences yet counts with the first one.
 */
export function trainingUsage(jobs: readonly TrainingJob[], kind: UsageKind): CurrentUsage {
  return sumUsage(jobs.filter((job) => kindOf(job) === kind && holdsInstances(job)).flatMap(demandsOf));
}

function holdsInstances(job: TrainingJob): boolean {
  return !isTerminal(job) || job.warmPool?.status === 'Available';
}

function demandsOf(job: TrainingJob): { instanceType: string; count: number }[] {
  if (job.cluster) return job.cluster.instances.map(({ instanceType }) => ({ instanceType, count: 1 }));
  return clusterOptions(job.request.ResourceConfig ?? {})[0]?.demands ?? [];
}

/** Instances in available warm pools, by type. */
export function warmPoolUsage(jobs: readonly TrainingJob[]): CurrentUsage {
  return sumUsage(jobs.filter((job) => job.warmPool?.status === 'Available').flatMap(demandsOf));
}

/** Adds up instances by type. */
export function sumUsage(demands: readonly { instanceType: string; count: number }[]): CurrentUsage {
  const byType = new Map<string, number>();
  for (const { instanceType, count } of demands) byType.set(instanceType, (byType.get(instanceType) ?? 0) + count);
  return { byType, total: demands.reduce((sum, demand) => sum + demand.count, 0) };
}
