import { onInstances } from '../config/resolve-run';
import type { RunSpec } from '../config/run-spec';
import { type PlanFacts, planRun } from '../planner/run/plan-run';
import { elasticSizes } from '../rules/compute/elastic';

/** The plan of a run on one of its sizes, from its first to its last step. */
export interface SizePlan {
  instanceCount: number;
  fits: 'fits' | 'tight' | 'oom';
  /** Memory of one GPU, GiB. */
  memoryGiB: number;
  stepSeconds: number;
  /** Hours without failures; null when the run file does not state how long to train. */
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
