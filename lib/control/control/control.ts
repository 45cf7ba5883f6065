import {
  type CardAnswer,
  type CardRequest,
  type ControlAnswer,
  type ControlRequest,
  controlRequestSchema,
  type Refusal,
  type StatusAnswer,
} from '../../core/contracts/control';
import { findTeamOfAlias } from '../../core/contracts/launcher';
import { modelCard } from '../../report/card/model-card';
import { cardFile, modelFacts } from '../../report/card/model-facts';
import { registryCard } from '../../report/card/registry-card';
import { assembleReport, type Read } from '../../report/read/assemble';
import { planOfRun, validateRun } from './ask-planner';
import { deleteRun } from './delete-run';
import type { ControlDeps, ReadDeps } from './deps';
import { noteRun, resumeRun, stopRun } from './desired';
import { refusal } from './own-run';
import { aliasRefusal, payloadIssue } from './payload';
import { answerRead } from './reads/answer';
import { statusOf } from './reads/status';
import { releasePool } from './release';
import { openShell } from './shell';
import { confirmStart } from './start/confirm';
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

/**
 * The model card that `slipway publish` writes beside the weights of a run. State, attempts and options come from the run table; timeline,
 * jobs and lineage come from the caller, who has the right to write any card anyway.
 */
async function cardOfRun(deps: ReadDeps, team: string, request: CardRequest): Promise<CardAnswer | Refusal> {
  const status = await statusOf(deps, team, { runId: request.runId, timeline: true, configuration: true });
  return status.ok ? cardOf(deps, status, request) : status;
}

/** The same, for a run whose status has been read already. */
export function cardOf(
  deps: Pick<ReadDeps, 'environment' | 'region' | 'now'>,
  status: StatusAnswer,
  { weights, lines, jobs, lineage }: CardRequest,
): CardAnswer {
  const report = assembleReport({
    ...{ status, environment: deps.environment, region: deps.region, readAt: deps.now().toISOString() },
    ...{ lines: known(lines), jobs: known(jobs), checkpoints: {}, quotas: {}, plan: {} },
  });
  const facts = modelFacts(report, lineage, status.configuration?.spec ?? {}, weights);
  return { ok: true, file: cardFile(weights), card: modelCard(facts), registryCard: registryCard(facts) };
}

const known = <T>(value: T | null): Read<T> => (value === null ? {} : { value });
