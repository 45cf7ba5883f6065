import type { RunSpec } from '../../config/run-spec';
import { stateBytes } from '../../distribution/memory-copies';
import type { LayoutInput } from '../layout';
import { type CheckpointPlan, checkpointPlan, expectedGoodput, secondsPerFailure } from './failures';
import { endedShare } from './save-interval';
import { type MemoryCopiesPlan, memoryCopiesPlan, sparesOf } from './spares';

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
