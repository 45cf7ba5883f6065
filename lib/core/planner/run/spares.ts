import type { RunSpec } from '../../config/run-spec';
import { type CheckpointPlan, type Copies, expectedGoodput, metBySpares, type Spares } from './failures';

/** The expected benefit of a number of spare hosts inside a job. */
export interface SpareValue {
  instances: number;
  /** Share of the hardware failures that spare hosts absorb. */
  met: number;
  goodput: number;
  goodputWithout: number;
  /** Additional hours of training hosts in kept steps, per 30 days. */
  savedNodeHours: number;
  /** Hours of the spare hosts per 30 days. */
  paidNodeHours: number;
}

const HOURS_A_MONTH = 720;
/** Maximum number of spare hosts that is evaluated. */
const MAX_SPARES = 32;

/** The spare hosts that the run file requests. */
export const sparesOf = (run: RunSpec): Spares => ({
  instances: run.compute.spareInstances,
  attemptSeconds: run.limits.maxRuntimeSeconds,
});

/** The expected benefit of the given spare hosts for this many nodes. */
export function spareValue(checkpoint: CheckpointPlan, nodes: number, spares: Spares, copies?: Copies): SpareValue {
  const goodput = expectedGoodput(checkpoint, nodes, spares, copies);
  const goodputWithout = expectedGoodput(checkpoint, nodes, undefined, copies);
  return {
    instances: spares.instances,
    met: metBySpares(nodes, spares),
    goodput,
    goodputWithout,
    savedNodeHours: (goodput - goodputWithout) * nodes * HOURS_A_MONTH,
    paidNodeHours: spares.instances * HOURS_A_MONTH,
  };
}

/** The number of spare hosts with the largest net benefit; undefined when none is worth its price. */
export function bestSpares(
  checkpoint: CheckpointPlan,
  nodes: number,
  attemptSeconds: number,
  copies?: Copies,
): SpareValue | undefined {
  const gain = (value: SpareValue) => value.savedNodeHours - value.paidNodeHours;
  return Array.from({ length: MAX_SPARES }, (_, i) =>
    spareValue(checkpoint, nodes, { instances: i + 1, attemptSeconds }, copies),
  )
    .filter((value) => gain(value) > 0)
    .sort((a, b) => gain(b) - gain(a))[0];
}
