import { growthPays, largerOptionIds, mayGrow } from '../../../core/lifecycle/phases/grow';
import type { RunRecord } from '../../../core/lifecycle/record';
import type { Admission, QueueInput } from '../../../core/queue/admit';
import { chooseGrowth } from '../../../core/queue/grow';
import { runningRun } from '../../shared/queue-runs';
import type { ReconcileDeps } from '../deps';
import { askToLeave } from './ask-to-leave';
import { isolateFailure } from './isolate-failure';
import type { RunNeeds } from './run-needs';

/** A change of the capacity that the queue reserves for the next attempt of a running elastic run. */
export interface ReservationChange {
  run: RunRecord;
  /** undefined: no capacity is reserved any more. */
  capacityOptionId: string | undefined;
}

/** Which running elastic runs get capacity for more instances, and which lose it because other runs wait. */
export function reservationChanges(
  input: QueueInput,
  admission: Admission,
  holding: readonly RunRecord[],
  needs: RunNeeds,
): ReservationChange[] {
  const growing = holding
    .filter((run) => mayGrow(run, input.now) && !hasLeft(run))
    .sort((a, b) => a.queuedAt - b.queuedAt)
    .map((run) => ({ run: runningRun(run, needs.of(run)), larger: needs.sizes(run, largerOptionIds(run)) }));
  const found = chooseGrowth(input, admission, growing);
  return holding.flatMap((run) => {
    const capacityOptionId = found.get(run.runId);
    return hasLeft(run) || capacityOptionId === run.reservation?.capacityOptionId ? [] : [{ run, capacityOptionId }];
  });
}

/** It was asked to exit for the reserved capacity, which no other run may take. */
export const hasLeft = ({ attempt, reservation }: RunRecord): boolean =>
  attempt?.handOver?.why === 'resized' && reservation !== undefined;

/**
 * Changes or releases existing reservations, because other runs may need the capacity. False when a run has changed in the meantime: the
 * next pass computes everything again.
 */
export async function releaseReservations(
  deps: ReconcileDeps,
  changes: readonly ReservationChange[],
): Promise<boolean> {
  const since = deps.now().getTime();
  for (const { run, capacityOptionId } of changes.filter((change) => change.run.reservation !== undefined)) {
    const reservation = capacityOptionId === undefined ? undefined : { capacityOptionId, since };
    const saved = await isolateFailure(deps, run, () =>
      deps.store.save({ ...run, reservation, version: run.version + 1 }, run, []),
    );
    if (!saved) return false;
  }
  return true;
}

/** Stores new reservations. A write that loses a race is made by the next pass. */
export async function keepReservations(deps: ReconcileDeps, changes: readonly ReservationChange[]): Promise<void> {
  const since = deps.now().getTime();
  for (const { run, capacityOptionId } of changes) {
    if (capacityOptionId === undefined || run.reservation !== undefined) continue;
    const text = `room for ${capacityOptionId} is kept for the next attempt`;
    const events = [{ at: since, what: 'room-kept', text, evidence: { rung: capacityOptionId } }];
    await isolateFailure(deps, run, () =>
      deps.store.save({ ...run, reservation: { capacityOptionId, since }, version: run.version + 1 }, run, events),
    );
  }
}

/** Asks jobs to exit for the capacity that has been reserved for them, if that pays. */
export async function growNow(
  deps: ReconcileDeps,
  holding: readonly RunRecord[],
  changes: readonly ReservationChange[],
) {
  const now = deps.now().getTime();
  for (const run of holding) {
    const text = changes.some((change) => change.run === run) ? undefined : growthPays(run, now);
    if (text === undefined) continue;
    await isolateFailure(deps, run, () => askToLeave(deps, run, { why: 'resized', text }));
  }
}
