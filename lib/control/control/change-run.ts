import type { IntentChange } from '../../core/lifecycle/intent';
import type { RunRecord } from '../../core/lifecycle/record';
import type { ControlDeps } from './deps';

/** Reconcile writes often, so a person's change is retried on the newest version. */
const MAX_TRIES = 8;

/** Applies a person's request to the newest version of the record. Returns the record after the change. */
export async function changeRun(
  deps: Pick<ControlDeps, 'store'>,
  record: RunRecord,
  requestChange: (record: RunRecord) => IntentChange | undefined,
): Promise<RunRecord> {
  let current = record;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const change = requestChange(current);
    if (!change) return current;
    if (await deps.store.save(change.record, current, change.events)) return change.record;
    const newest = await deps.store.find(record.runId);
    if (!newest) throw new Error(`run ${record.runId} disappeared from the run table`);
    current = newest;
  }
  throw new Error(`run ${record.runId} is being written all the time; try again`);
}
