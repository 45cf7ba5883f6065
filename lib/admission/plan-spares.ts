import type { RunPlan } from '../planner/run/plan-run';
import { bestSpares, type SpareValue, sparesOf, spareValue } from '../planner/run/spares';
import { checkRun } from '../rules';
import type { RunSpec } from '../spec/run-spec';

/** What the spare hosts of a run are worth, or which number of them would be. */
export interface SpareValues {
  /** Of those that the run has. */
  own?: SpareValue;
  /** Of the best number, where it has none, may have some, and they save more than they cost. */
  advice?: SpareValue;
}

/** Looks at spare hosts with the planner's eyes and with those of the rules. */
export function spareValues(run: RunSpec, { checkpoint, layout }: RunPlan): SpareValues {
  const spares = sparesOf(run);
  if (spares.instances > 0) return { own: spareValue(checkpoint, layout.nodes, spares) };
  const advice = bestSpares(checkpoint, layout.nodes, spares.attemptSeconds);
  return advice && mayHave(run, advice.instances) ? { advice } : {};
}

const mayHave = (run: RunSpec, spareInstances: number): boolean =>
  !checkRun({ ...run, compute: { ...run.compute, spareInstances } }).some(({ rule }) =>
    rule.startsWith('compute/spare-'),
  );
