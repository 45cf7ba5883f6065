import constants from '../../catalog/trainer-constants.json';
import type { RunSpec } from '../../config/run-spec';
import { copiesMemory, memoryCopies, stateBytes } from '../../distribution/memory-copies';
import type { LayoutInput } from '../layout';
import {
  type CheckpointPlan,
  type Copies,
  checkpointPlan,
  DEVICE_TO_HOST_BYTES_PER_SECOND,
  endedShare,
  expectedGoodput,
  metBySpares,
  nodeBytesPerSecond,
  optimalSaveSeconds,
  type Spares,
  secondsPerFailure,
} from './failures';

const HOURS_A_MONTH = 720;
const MAX_SPARES = 32;

/** The spare hosts that the run file requests. */
export const sparesOf = (run: RunSpec): Spares => ({
  instances: run.compute.spareInstances,
  attemptSeconds: run.limits.maxRuntimeSeconds,
});

/** The expected benefit of the given spare hosts for this many nodes. */
export function spareValue(checkpoint: CheckpointPlan, nodes: number, spares: Spares, copies?: Copies) {
  const goodput = expectedGoodput(checkpoint, nodes, spares, copies);
  const goodputWithout = expectedGoodput(checkpoint, nodes, undefined, copies);
  return {
    instances: spares.instances,
    /** Share of the hardware failures that spare hosts absorb. */
    met: metBySpares(nodes, spares),
    goodput,
    goodputWithout,
    /** Additional hours of training hosts in kept steps, and hours of the spare hosts, per 30 days. */
    savedNodeHours: (goodput - goodputWithout) * nodes * HOURS_A_MONTH,
    paidNodeHours: spares.instances * HOURS_A_MONTH,
  };
}

export type SpareValue = ReturnType<typeof spareValue>;

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

/** What copies of the state in host memory need, cost and save; undefined if the run keeps none. */
function memoryCopiesPlan(run: RunSpec, layout: LayoutInput, stepSeconds: number) {
  const copies = memoryCopies(run);
  const memory = copies && copiesMemory(run, copies);
  if (!memory) return undefined;
  const { stateGiB, gib, availableGiB, isSent } = memory;
  const bytes = stateGiB * 2 ** 30;
  // The GPUs copy during the forward and backward passes of the next step, whose update waits for the rest.
  const blocked = Math.max(0, bytes / layout.gpusPerNode / DEVICE_TO_HOST_BYTES_PER_SECOND - stepSeconds);
  const exchange = isSent ? bytes / nodeBytesPerSecond(layout.networkGbps) : 0;
  const cheap = Math.max(optimalSaveSeconds(blocked, layout.nodes, 1), blocked / constants.copiesShareOfTime);
  const steps = Math.ceil(Math.max(cheap, exchange, stepSeconds) / stepSeconds);
  const everySteps = copies.everySteps === 'auto' ? steps : copies.everySteps;
  return {
    everySteps,
    copies: copies.copies,
    /** On each host, and what the copies may use there. */
    gib,
    availableGiB,
    /** Otherwise the run trains without copies. */
    fits: gib <= availableGiB,
    overhead: blocked / (everySteps * stepSeconds),
    lossSeconds: (everySteps * stepSeconds) / 2,
  };
}

export type MemoryCopiesPlan = NonNullable<ReturnType<typeof memoryCopiesPlan>>;

/** How a run saves its state and comes back from failures, and what that costs. */
export interface RecoveryPlan {
  checkpoint: CheckpointPlan;
  /** Undefined if the run keeps no copies in memory. */
  memoryCopies?: MemoryCopiesPlan;
  /** Share of the wall time spent on kept steps. */
  goodput: number;
  /** Expected seconds that a failure costs: until the first new step, and of repeated steps. */
  failureSeconds: number;
}

/** The copies of a run, without those that do not fit. */
export const keptCopies = ({ memoryCopies }: Pick<RecoveryPlan, 'memoryCopies'>): MemoryCopiesPlan | undefined =>
  memoryCopies?.fits ? memoryCopies : undefined;

/** Plans saves, copies in memory and the goodput to expect. */
export function recoveryPlan(run: RunSpec, layout: LayoutInput, stepSeconds: number): RecoveryPlan {
  const memoryCopies = memoryCopiesPlan(run, layout, stepSeconds);
  const kept = keptCopies({ memoryCopies });
  const spares = sparesOf(run);
  const ended = kept && endedShare(spares.instances > 0);
  const checkpoint = checkpointPlan(stateBytes(run.training, layout.model), layout, ended);
  return {
    checkpoint,
    ...(memoryCopies && { memoryCopies }),
    goodput: expectedGoodput(checkpoint, layout.nodes, spares, kept),
    failureSeconds: secondsPerFailure(checkpoint, layout.nodes, spares, kept),
  };
}
