import constants from '../../catalog/trainer-constants.json';
import type { RunSpec } from '../../config/run-spec';
import { copiesMemory, memoryCopies } from '../../distribution/memory-copies';
import type { LayoutInput } from '../layout';
import { type Copies, DEVICE_TO_HOST_BYTES_PER_SECOND, nodeBytesPerSecond } from './failures';
import { optimalSaveSeconds } from './save-interval';

/** What copies of the state in host memory need, cost and save. */
export interface MemoryCopiesPlan extends Copies {
  everySteps: number;
  /** On each host. */
  gib: number;
  /** What the copies may use on each host. */
  availableGiB: number;
  /** Otherwise the run trains without copies. */
  fits: boolean;
}

/** The plan of the copies; undefined if the run keeps none. */
export function memoryCopiesPlan(run: RunSpec, layout: LayoutInput, stepSeconds: number): MemoryCopiesPlan | undefined {
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
    gib,
    availableGiB,
    fits: gib <= availableGiB,
    overhead: blocked / (everySteps * stepSeconds),
    lossSeconds: (everySteps * stepSeconds) / 2,
  };
}
