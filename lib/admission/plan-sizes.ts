import { type PlanFacts, planRun } from '../planner/run/plan-run';
import { elasticSizes } from '../rules/compute/elastic';
import { onInstances } from '../spec/resolve-run';
import type { RunSpec } from '../spec/run-spec';

/** What the run would be on one of its sizes, from its first step to its last. */
export interface SizePlan {
  instanceCount: number;
  fits: 'fits' | 'tight' | 'oom';
  /** GiB of one GPU. */
  memoryGiB: number;
  stepSeconds: number;
  /** null = the run file says no end. */
  hours: number | null;
  usd: number | null;
}

/** A plan of each size of an elastic run, largest first; empty for a run of one size. */
export function sizePlans(run: RunSpec, facts: PlanFacts): SizePlan[] {
  return elasticSizes(run).flatMap((instanceCount) => {
    const plan = planRun(onInstances(run, instanceCount), facts);
    if (Array.isArray(plan)) return [];
    const { fits, memoryGiB, stepSeconds, hours, usd } = plan;
    return { instanceCount, fits, memoryGiB: memoryGiB.total, stepSeconds, hours, usd: usd.onDemand };
  });
}
