import type { RunSpec } from '../../spec/run-spec';
import { type CheckpointPlan, expectedGoodput, metBySpares, type Spares } from './failures';

/** What a number of spare hosts inside a job is expected to be worth. */
export interface SpareValue {
  instances: number;
  /** Share of the hardware failures that a spare host meets. */
  met: number;
  goodput: number;
  goodputWithout: number;
  /** Hours of training hosts in kept steps that 30 days have more. */
  savedNodeHours: number;
  /** Hours of the spare hosts in 30 days. */
  paidNodeHours: number;
}

const HOURS_A_MONTH = 720;
/** Spare hosts beyond which no run is looked at. */
const MOST_SPARES = 32;

/** The spare hosts that the run file asks for. */
export const sparesOf = (run: RunSpec): Spares => ({
  instances: run.compute.spareInstances,
  attemptSeconds: run.limits.maxRuntimeSeconds,
});

/** What the given spare hosts are worth to so many nodes. */
export function spareValue(checkpoint: CheckpointPlan, nodes: number, spares: Spares): SpareValue {
  const goodput = expectedGoodput(checkpoint, nodes, spares);
  const goodputWithout = expectedGoodput(checkpoint, nodes);
  return {
    instances: spares.instances,
    met: metBySpares(nodes, spares),
    goodput,
    goodputWithout,
    savedNodeHours: (goodput - goodputWithout) * nodes * HOURS_A_MONTH,
    paidNodeHours: spares.instances * HOURS_A_MONTH,
  };
}

/** The number of spare hosts that saves most beyond its own price; undefined where none saves more than it costs. */
export function bestSpares(checkpoint: CheckpointPlan, nodes: number, attemptSeconds: number): SpareValue | undefined {
  const gain = (value: SpareValue) => value.savedNodeHours - value.paidNodeHours;
  return Array.from({ length: MOST_SPARES }, (_, i) =>
    spareValue(checkpoint, nodes, { instances: i + 1, attemptSeconds }),
  )
    .filter((value) => gain(value) > 0)
    .sort((a, b) => gain(b) - gain(a))[0];
}
