import { growthPays, largerOptionIds, mayGrow } from '../../../core/lifecycle/phases/grow';
import type { RunRecord } from '../../../core/lifecycle/record';
import type { Admission, QueueInput } from '../../../core/queue/admit';
import { chooseGrowth } from '../../../core/queue/grow';
import { runningRun } from '../../shared/queue-runs';
import type { ReconcileDeps } from '../deps';
import { askToLeave } from './ask-to-leave';
import { isolateFailure } from './isolate-failure';
import type { RunNeeds } from './run-needs';

/** A change of the room that the queue reserves for the next attempt of a running elastic run. */
export interface RoomChange {
  run: RunRecord;
  /** undefined: no room is reserved any more. */
  capacityOptionId: string | undefined;
}

/** Which running elastic runs get room for more instances, and which lose it because other runs wait. */
export function roomChanges(
  input: QueueInput,
  admission: Admission,
  holding: readonly RunRecord[],
  needs: RunNeeds,
): RoomChange[] {
  const growing = holding
    .filter((run) => mayGrow(run, input.now) && !hasLeft(run))
    .sort((a, b) => a.queuedAt - b.queuedAt)
    .map((run) => ({ run: runningRun(run, needs.of(run)), larger: needs.sizes(run, largerOptionIds(run)) }));
  const found = chooseGrowth(input, admission, growing);
  return holding.flatMap((run) => {
    const capacityOptionId = found.get(run.runId);
    return hasLeft(run) || capacityOptionId === run.roomFor?.capacityOptionId ? [] : [{ run, capacityOptionId }];
  });
}

/** It was asked to exit for the reserved room, which no other run may take. */
export const hasLeft = ({ attempt, roomFor }: RunRecord): boolean =>
  attempt?.handOver?.why === 'resized' && roomFor !== undefined;

/**
 * Changes or releases existing reservations, because other runs may need the room. False when a run has changed in the meantime: the next
 * pass computes everything again.
 */
export async function takeRoomBack(deps: ReconcileDeps, changes: readonly RoomChange[]): Promise<boolean> {
  const since = deps.now().getTime();
  for (const { run, capacityOptionId } of changes.filter((change) => change.run.roomFor !== undefined)) {
    const roomFor = capacityOptionId === undefined ? undefined : { capacityOptionId, since };
    const saved = await isolateFailure(deps, run, () =>
      deps.store.save({ ...run, roomFor, version: run.version + 1 }, run, []),
    );
    if (!saved) return false;
  }
  return true;
}

/** Stores new reservations. A write that loses a race is made by the next pass. */
export async function keepRoom(deps: ReconcileDeps, changes: readonly RoomChange[]): Promise<void> {
  const since = deps.now().getTime();
  for (const { run, capacityOptionId } of changes) {
    if (capacityOptionId === undefined || run.roomFor !== undefined) continue;
    const text = `room for ${capacityOptionId} is kept for the next attempt`;
    const events = [{ at: since, what: 'room-kept', text, evidence: { rung: capacityOptionId } }];
    await isolateFailure(deps, run, () =>
      deps.store.save({ ...run, roomFor: { capacityOptionId, since }, version: run.version + 1 }, run, events),
    );
  }
}

/** Asks jobs to exit for the room that has been reserved for them, if that pays. */
export async function growNow(deps: ReconcileDeps, holding: readonly RunRecord[], changes: readonly RoomChange[]) {
  const now = deps.now().getTime();
  for (const run of holding) {
    const text = changes.some((change) => change.run === run) ? undefined : growthPays(run, now);
    if (text === undefined) continue;
    await isolateFailure(deps, run, () => askToLeave(deps, run, { why: 'resized', text }));
  }
}
