import type { Issue } from '../config/issue';
import type { RunSpec } from '../config/run-spec';
import { type DataPlan, planData } from '../planner/run/data-plan';
import { type NearestPublished, nearestPublished } from '../planner/run/nearest-published';
import { type PlanFacts, planRun, type RunPlan } from '../planner/run/plan-run';
import { type SizePlan, sizePlans } from './plan-sizes';
import { type SpareValues, spareValues } from './plan-spares';

/** The output of `slipway plan --json`, and of the control function's `plan`. */
export type PlanDocument = RunPlan & {
  spares: SpareValues;
  /** The nearest published run. @default - none is near */
  nearest?: NearestPublished;
  /** For an elastic run, largest size first. @default - the run has one size */
  sizes?: SizePlan[];
  /** How the training data should be stored and read. @default - the run has no data */
  data?: DataPlan;
};

/** The complete plan of a run, or the issues that prevent it. */
export function planDocument(run: RunSpec, facts: PlanFacts): PlanDocument | Issue[] {
  const plan = planRun(run, facts);
  if (Array.isArray(plan)) return plan;
  const sizes = sizePlans(run, facts);
  const data = dataOf(run, plan);
  const nearest = nearestPublished(plan.layout);
  return {
    ...plan,
    spares: spareValues(run, plan),
    ...(nearest && { nearest }),
    ...(sizes.length > 0 && { sizes }),
    ...(data && { data }),
  };
}

const dataOf = (run: RunSpec, { tokensPerSecond, tokens, layout }: RunPlan): DataPlan | undefined =>
  planData(run, { tokensPerSecond, tokens, dataRanks: layout.shard * layout.replicate });
