import { askHandOver } from '../../../core/lifecycle/intent';
import type { HandOver, RunRecord } from '../../../core/lifecycle/record';
import { sendMessage } from '../../shared/queue';
import type { ReconcileDeps } from '../deps';

/** The run's own worker may write between the read and the write of each try. */
const MAX_TRIES = 3;

/**
 * Asks the job of a run to save and exit, and wakes the run's worker, which sends the request to the job. Does nothing for a run that
 * cannot be asked. The index may show an older record, and the run's worker writes at the same time at every tick: a write that loses the
 * race is tried again on the current record, as long as the attempt is the same.
 */
export async function askToLeave(
  deps: ReconcileDeps,
  run: RunRecord,
  why: Pick<HandOver, 'why'> & { text: string },
): Promise<void> {
  let record: RunRecord | undefined = run;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if (!record || record.attempt?.number !== run.attempt?.number) return;
    const change = askHandOver(record, { ...why, at: deps.now().getTime() });
    if (!change) return;
    if (await deps.store.save(change.record, record, change.events)) return wake(deps, change.record);
    record = await deps.store.find(run.runId);
  }
}

/** The run's own worker reads what was just written. */
export async function wake(deps: ReconcileDeps, { runId, version }: RunRecord): Promise<void> {
  await sendMessage(deps.sqs, deps.queueUrl, { kind: 'run', runId }, `${runId}/${version}`);
}
