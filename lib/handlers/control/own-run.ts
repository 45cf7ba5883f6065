import type { Refusal } from '../../contracts/control';
import type { RunRecord } from '../../lifecycle/record';
import { type Issue, issue } from '../../spec/issue';
import type { ControlDeps } from './deps';

export const refusal = (...issues: Issue[]): Refusal => ({ ok: false, issues });

/** A run of this team. Another team's run is answered like one that does not exist: its id is nobody else's business. */
export async function findOwnRun(deps: ControlDeps, team: string, runId: string): Promise<RunRecord | Refusal> {
  const record = await deps.store.find(runId);
  if (record?.team === team) return record;
  const text = {
    must: `must be a run of team ${team} in environment ${deps.environment}`,
    got: runId,
    fix: 'see slipway list',
  };
  return refusal(issue('run/unknown', 'error', '', text));
}

/** Why nothing may start or be resumed now; undefined when it may. */
export async function closedRefusal(deps: ControlDeps): Promise<Refusal | undefined> {
  if (!(await deps.store.isClosed())) return undefined;
  const text = { must: 'must not be one that is being deleted', got: deps.environment, fix: 'deploy it again first' };
  return refusal(issue('environment/closed', 'error', 'environment', text));
}
