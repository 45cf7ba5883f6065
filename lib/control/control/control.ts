import { type ControlAnswer, type ControlRequest, controlRequestSchema } from '../../core/contracts/control';
import { findTeamOfAlias } from '../../core/contracts/launcher';
import { planOfRun, validateRun } from './ask-planner';
import { cardOfRun } from './card';
import { noteRun, releasePool, resumeRun, stopRun } from './change-run';
import { deleteRun } from './delete-run';
import type { ControlDeps } from './deps';
import { refusal } from './own-run';
import { aliasRefusal, payloadIssue } from './payload';
import { answerRead } from './reads/logs';
import { openShell } from './shell';
import { confirmStart } from './start/check-run';
import { startRun } from './start/start';

/**
 * The function that people invoke, through one alias per team: start, stop, resume, release, delete, status, list, logs, events, shell,
 * note, validate, plan, card.
 *
 * It only records the desired state, which reconcile then brings about; it handles only shells and warm pools itself. The team is that of
 * the alias that was invoked, never of the payload. Every write is conditional, so that two simultaneous calls have the same result as two
 * calls in sequence; a repeated start is recognised by its request id. A rejected request is answered with issues; the function throws only
 * for errors that the caller cannot correct.
 */
export async function onRequest(
  deps: ControlDeps,
  payload: unknown,
  invokedFunctionArn: string,
): Promise<ControlAnswer> {
  const team = findTeamOfAlias(invokedFunctionArn);
  if (!team) return aliasRefusal(invokedFunctionArn, 'controlAliasArn');
  const parsed = controlRequestSchema.safeParse(payload, { reportInput: true });
  if (!parsed.success) return refusal(...parsed.error.issues.map(payloadIssue));
  return dispatch(deps, team, parsed.data);
}

function dispatch(deps: ControlDeps, team: string, request: ControlRequest): Promise<ControlAnswer> {
  switch (request.action) {
    case 'start':
      return request.confirm ? confirmStart(deps, team, request) : startRun(deps, team, request);
    case 'stop':
      return stopRun(deps, team, request);
    case 'resume':
      return resumeRun(deps, team, request);
    case 'release':
      return releasePool(deps, team, request);
    case 'delete':
      return deleteRun(deps, team, request);
    case 'shell':
      return openShell(deps, team, request);
    case 'note':
      return noteRun(deps, team, request);
    case 'validate':
      return validateRun(deps, team, request);
    case 'plan':
      return planOfRun(deps, team, request);
    case 'card':
      return cardOfRun(deps, team, request);
    default:
      return answerRead(deps, team, request);
  }
}
