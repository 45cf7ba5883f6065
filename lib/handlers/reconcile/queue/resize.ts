import { growthPays, largerRungs, mayGrow } from '../../../lifecycle/phases/grow';
import type { RunRecord } from '../../../lifecycle/record';
import type { Admission, QueueInput } from '../../../queue/admit';
import { chooseGrowth } from '../../../queue/grow';
import { runningRun } from '../../shared/queue-runs';
import type { ReconcileDeps } from '../deps';
import { askToLeave } from './ask-to-leave';
import { isolateFailure } from './isolate-failure';
import type { RunNeeds } from './run-needs';

/** Room that the queue keeps for the next attempts of running elastic runs, beside what it keeps for them now. */
export interface RoomChange {
  run: RunRecord;
  /** undefined: none any more. */
  rungId: string | undefined;
}

/** Which running elastic runs get room for more instances, and which lose it because others wait. */
export function roomChanges(
  input: QueueInput,
  admission: Admission,
  holding: readonly RunRecord[],
  needs: RunNeeds,
): RoomChange[] {
  const growing = holding
    .filter((run) => mayGrow(run, input.now) && !hasLeft(run))
    .sort((a, b) => (a.queuedAt ?? 0) - (b.queuedAt ?? 0))
    .map((run) => ({ run: runningRun(run, needs.of(run)), larger: needs.sizes(run, largerRungs(run)) }));
  const found = chooseGrowth(input, admission, growing);
  return holding.flatMap((run) => {
    const rungId = found.get(run.runId);
    return hasLeft(run) || rungId === run.roomFor?.rungId ? [] : [{ run, rungId }];
  });
}

/** It was asked to exit for the reserved room, which no other run may take. */
export const hasLeft = ({ attempt, roomFor }: RunRecord): boolean =>
  attempt?.handOver?.why === 'resized' && roomFor !== undefined;

/** Changes the room that runs had: others may need it. False when a run has moved on meanwhile: the next pass counts again. */
export async function takeRoomBack(deps: ReconcileDeps, changes: readonly RoomChange[]): Promise<boolean> {
  const since = deps.now().getTime();
  for (const { run, rungId } of changes.filter((change) => change.run.roomFor !== undefined)) {
    const roomFor = rungId === undefined ? undefined : { rungId, since };
    const saved = await isolateFailure(deps, run, () =>
      deps.store.save({ ...run, roomFor, version: run.version + 1 }, run.version, []),
    );
    if (!saved) return false;
  }
  return true;
}

/** Writes down the room that runs get which had none. A write that loses a race is made by the next pass. */
export async function keepRoom(deps: ReconcileDeps, changes: readonly RoomChange[]): Promise<void> {
  const since = deps.now().getTime();
  for (const { run, rungId } of changes) {
    if (rungId === undefined || run.roomFor !== undefined) continue;
    const text = `room for ${rungId} is kept for the next attempt`;
    const events = [{ at: since, what: 'room-kept', text, evidence: { rung: rungId } }];
    await isolateFailure(deps, run, () =>
      deps.store.save({ ...run, roomFor: { rungId, since }, version: run.version + 1 }, run.version, events),
    );
  }
}

/** Asks jobs to leave for the room that has been kept for them, where that pays. */
export async function growNow(deps: ReconcileDeps, holding: readonly RunRecord[], changes: readonly RoomChange[]) {
  const now = deps.now().getTime();
  for (const run of holding) {
    const text = changes.some((change) => change.run === run) ? undefined : growthPays(run, now);
    if (text === undefined) continue;
    await isolateFailure(deps, run, () => askToLeave(deps, run, { why: 'resized', text }));
  }
}
