import type { RunSpec } from '../../config/run-spec';
import { copiesMemory, memoryCopies } from '../../distribution/memory-copies';
import type { LayoutInput } from '../layout';
import { DEVICE_TO_HOST_BYTES_PER_SECOND, meanHoursBetweenFailures, nodeBytesPerSecond } from './failures';

/** What copies of the state in host memory need, cost and save. */
export interface MemoryCopiesPlan {
  everySteps: number;
  copies: 1 | 2;
  /** On each host. */
  gib: number;
  /** What the copies may use on each host. */
  availableGiB: number;
  /** Otherwise the run trains without copies. */
  fits: boolean;
  /** Share of the training time for which updates of the state wait for a copy. */
  overhead: number;
  /** Expected time of the steps that are repeated after a restart in place. */
  lossSeconds: number;
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
  const optimum = Math.sqrt(2 * blocked * meanHoursBetweenFailures(layout.nodes) * 3600);
  const steps = Math.ceil(Math.max(optimum, exchange, stepSeconds) / stepSeconds);
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
