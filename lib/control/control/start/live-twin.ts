import type { RunSpec } from '../../../core/config/run-spec';
import type { StartRequest } from '../../../core/contracts/control';
import { isOver } from '../../../core/lifecycle/record';
import type { ControlDeps } from '../deps';

/** Request id of a registered run: the hash of its file and code (handlers/registered-run). Requests of people have random UUIDs. */
export const REGISTERED = /^[0-9a-f]{64}$/;
/** Number of newest runs of the team that are searched. */
const MAX_COMPARED = 200;

/**
 * Finds the live run that an earlier start of the same registered run created. In 0.1.0, request items expired after a week, so that a
 * CloudFormation rollback would have started the training of the old file a second time.
 */
export async function findLiveTwin(
  deps: ControlDeps,
  team: string,
  request: StartRequest,
  run: RunSpec,
): Promise<string | undefined> {
  if (!REGISTERED.test(request.clientRequestId)) return undefined;
  const runs = await deps.store.ofTeam(team, MAX_COMPARED);
  const file = JSON.stringify(run.written);
  for (const { runId } of runs.filter((r) => r.name === run.name && !isOver(r))) {
    const intent = await deps.store.findIntent(runId);
    const isSameCode = (intent?.code?.sha256 ?? null) === (request.code?.sha256 ?? run.code.sha256 ?? null);
    if (isSameCode && JSON.stringify(intent?.spec.written) === file) return runId;
  }
  return undefined;
}
