import { askHandOver } from '../../lifecycle/intent';
import type { HandOver, RunRecord } from '../../lifecycle/record';
import { sendMessage } from '../shared/queue';
import type { ReconcileDeps } from './deps';

/**
 * Asks a run's job to save and leave, and wakes the run's worker, which tells the job. Does nothing for a run that cannot be asked. The
 * index may show an older record: the write then loses, and the next pass asks again.
 */
export async function askToLeave(
  deps: ReconcileDeps,
  run: RunRecord,
  why: Pick<HandOver, 'why'> & { text: string },
): Promise<void> {
  const change = askHandOver(run, { ...why, at: deps.now().getTime() });
  if (!change || !(await deps.store.save(change.record, run.version, change.events))) return;
  await wake(deps, change.record);
}

/** The run's own worker reads what was written. */
export async function wake(deps: ReconcileDeps, { runId, version }: RunRecord): Promise<void> {
  await sendMessage(deps.sqs, deps.queueUrl, { kind: 'run', runId }, `${runId}/${version}`);
}
