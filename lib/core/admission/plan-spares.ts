import type { RunSpec } from '../config/run-spec';
import type { RunPlan } from '../planner/run/plan-run';
import { keptCopies } from '../planner/run/recovery';
import { bestSpares, type SpareValue, sparesOf, spareValue } from '../planner/run/spares';
import { checkRun } from '../rules';

/** The value of a run's spare hosts, or of a recommended number of them. */
export interface SpareValues {
  /** Value of the spare hosts that the run has. */
  own?: SpareValue;
  /** Value of the best number of spare hosts, if the run has none, may have some, and they save more than they cost. */
  advice?: SpareValue;
}

/** Evaluates spare hosts with the planner and the rules. */
export function spareValues(run: RunSpec, plan: RunPlan): SpareValues {
  const spares = sparesOf(run);
  const { checkpoint, layout } = plan;
  const copies = keptCopies(plan);
  if (spares.instances > 0) return { own: spareValue(checkpoint, layout.nodes, spares, copies) };
  const advice = bestSpares(checkpoint, layout.nodes, spares.attemptSeconds, copies);
  return advice && mayHave(run, advice.instances) ? { advice } : {};
}

const mayHave = (run: RunSpec, spareInstances: number): boolean =>
  !checkRun({ ...run, compute: { ...run.compute, spareInstances } }).some(({ rule }) =>
    rule.startsWith('compute/spare-'),
  );
