import { planDocument } from '../../core/admission';
import type { Descriptor } from '../../core/config/descriptor';
import { bareIssue, hasErrors } from '../../core/config/issue';
import { loadRun } from '../../core/config/load';
import {
  type ConfirmRequest,
  type ControlAnswer,
  type ControlRequest,
  controlRequestSchema,
  type PlanAnswer,
  type Refusal,
  type RequestOf,
  type ValidateAnswer,
} from '../../core/contracts/control';
import { findTeamOfAlias } from '../../core/contracts/launcher';
import { checkRun } from '../../core/rules';
import { readDescriptor } from '../shared/descriptors';
import { noteRun, releasePool, resumeRun, stopRun } from './change-run';
import { deleteRun } from './delete-run';
import type { ControlDeps, ReadDeps } from './deps';
import { aliasRefusal, findOwnRun, payloadIssue, refusal } from './own-run';
import { answerRead } from './reads/logs';
import { openShell } from './shell';
import { confirmStart } from './start/check-run';
import { startRun } from './start/start';

/**
 * The function that people invoke, through one alias per team: start, stop, resume, release, delete, status, list, logs, events, shell,
 * note, validate, plan.
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

async function dispatch(deps: ControlDeps, team: string, request: ControlRequest): Promise<ControlAnswer> {
  switch (request.action) {
    case 'start':
      return request.confirm ? changeOwn(deps, team, request) : startRun(deps, team, request);
    case 'validate':
      return validateRun(deps, team, request);
    case 'plan':
      return planOfRun(deps, team, request);
    case 'status':
    case 'list':
    case 'events':
    case 'logs':
      return answerRead(deps, team, request);
    default:
      return changeOwn(deps, team, request);
  }
}

/** Requests that change one run of the team. */
type OwnRequest = RequestOf<'stop' | 'resume' | 'release' | 'delete' | 'shell' | 'note'>;

async function changeOwn(
  deps: ControlDeps,
  team: string,
  request: OwnRequest | ConfirmRequest,
): Promise<ControlAnswer> {
  const own = await findOwnRun(deps, team, request.runId);
  if ('ok' in own) return own;
  switch (request.action) {
    case 'start':
      return confirmStart(deps, own);
    case 'stop':
      return stopRun(deps, own, request);
    case 'resume':
      return resumeRun(deps, own);
    case 'release':
      return releasePool(deps, own);
    case 'delete':
      return deleteRun(deps, own, request);
    case 'shell':
      return openShell(deps, own, request);
    case 'note':
      return noteRun(deps, own, request);
  }
}

/** The result of `slipway validate` for the run in the team's environment. The code folder is not available here and is not checked. */
async function validateRun(
  deps: Pick<ControlDeps, 'ssm' | 'environment' | 'region' | 'now'>,
  team: string,
  { runFile, overrides }: RequestOf<'validate'>,
): Promise<ValidateAnswer> {
  const { run, issues } = check(runFile, overrides, await readDescriptor(deps, team), deps.region);
  return { ok: true, isValid: !hasErrors(issues), issues: issues.map(bareIssue), codeSource: run?.code.source ?? null };
}

/** The output of `slipway plan --json`, at the environment's own prices. */
async function planOfRun(
  deps: ReadDeps,
  team: string,
  { runFile, overrides }: RequestOf<'plan'>,
): Promise<PlanAnswer | Refusal> {
  const descriptor = await readDescriptor(deps, team);
  const { run, issues } = check(runFile, overrides, descriptor, deps.region);
  if (!run || hasErrors(issues)) return { ok: false, issues: issues.map(bareIssue) };
  const plan = planDocument(run, { region: deps.region, prices: descriptor.prices });
  if (Array.isArray(plan)) return { ok: false, issues: plan.map(bareIssue) };
  return { ok: true, plan };
}

function check(text: string, overrides: readonly string[], descriptor: Descriptor, region: string) {
  const loaded = loadRun(text, overrides);
  const run = loaded.value;
  return { run, issues: [...loaded.issues, ...(run ? checkRun(run, { descriptor, region }) : [])] };
}
