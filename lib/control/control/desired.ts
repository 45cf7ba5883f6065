import { issue } from '../../core/config/issue';
import type { DesiredAnswer, NoteAnswer, Refusal } from '../../core/contracts/control';
import type { RunMessage } from '../../core/contracts/launcher';
import { askResume, askStop, isResumable, writeNote } from '../../core/lifecycle/intent';
import { isOver, type RunRecord } from '../../core/lifecycle/record';
import { sendMessage } from '../shared/queue';
import { isQueued } from '../shared/queue-runs';
import { changeRun } from './change-run';
import type { ControlDeps } from './deps';
import { anotherRunRefusal, closedRefusal, findOwnRun, refusal } from './own-run';

/** Records that the run should stop. Stopping a run that is over is not an error. */
export async function stopRun(
  deps: ControlDeps,
  team: string,
  request: { runId: string; reason?: string },
): Promise<DesiredAnswer | Refusal> {
  const own = await findOwnRun(deps, team, request.runId);
  if ('ok' in own) return own;
  const why = `stop asked by team ${team}${request.reason ? `: ${request.reason}` : ''}`;
  const record = await changeRun(deps, own, (r) => askStop(r, why, deps.now().getTime()));
  return wake(deps, own, record);
}

/** Records a person's note, by which the run can be found. */
export async function noteRun(
  deps: ControlDeps,
  team: string,
  request: { runId: string; text: string },
): Promise<NoteAnswer | Refusal> {
  const own = await findOwnRun(deps, team, request.runId);
  if ('ok' in own) return own;
  const { runId } = await changeRun(deps, own, (r) => writeNote(r, request.text, deps.now().getTime()));
  return { ok: true, runId, note: request.text };
}

/** Records that the run should continue, from its newest committed checkpoint. */
export async function resumeRun(
  deps: ControlDeps,
  team: string,
  request: { runId: string },
): Promise<DesiredAnswer | Refusal> {
  const own = await findOwnRun(deps, team, request.runId);
  if ('ok' in own) return own;
  if (isOver(own) && !isResumable(own)) {
    const must = 'must be a run that is not completed, whose code was uploaded, and whose files were not deleted';
    const text = { must, got: `${own.runId}, ${own.state}`, fix: 'launch it again' };
    return refusal(issue('run/not-resumable', 'error', '', text));
  }
  const isNew = own.desired !== 'run' || isOver(own);
  const refused = (await closedRefusal(deps)) ?? (isNew ? await anotherRunRefusal(deps, team) : undefined);
  if (refused) return refused;
  const record = await changeRun(deps, own, (r) => askResume(r, deps.now().getTime()));
  return wake(deps, own, record);
}

/**
 * A run that waits in the queue is started by the queue; everything else, including the stop of a waiting run, is done by the run's own
 * reconcile pass.
 */
async function wake(deps: ControlDeps, before: RunRecord, record: RunRecord): Promise<DesiredAnswer> {
  const changed = record.desired !== before.desired || (isOver(before) && !isOver(record));
  const answer: DesiredAnswer = {
    ok: true,
    runId: record.runId,
    desiredState: record.desired,
    state: before.state,
    changed,
  };
  // A run that is over needs no message. For every other run the message is sent again, because an earlier one may have been lost.
  if (isOver(record)) return answer;
  const { runId } = record;
  const message: RunMessage = isQueued(record) ? { kind: 'admit', runId } : { kind: 'run', runId };
  await sendMessage(deps.sqs, deps.queueUrl, message, `${record.runId}/${record.version}`);
  return answer;
}
