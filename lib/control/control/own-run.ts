import { type Issue, issue } from '../../core/config/issue';
import type { Refusal } from '../../core/contracts/control';
import type { RunRecord } from '../../core/lifecycle/record';
import { readDescriptor } from '../shared/descriptors';
import { UnreadableItem } from '../shared/stored';
import { spentBudget } from '../shared/team-budget';
import type { ControlDeps, ReadDeps } from './deps';

/** A refusal with these issues. */
export const refusal = (...issues: Issue[]): Refusal => ({ ok: false, issues });

/** Finds a run of this team. A run of another team is treated as if it did not exist, so that run ids are not disclosed. */
export async function findOwnRun(deps: ReadDeps, team: string, runId: string): Promise<RunRecord | Refusal> {
  const record = await deps.store.findOther(runId);
  if (record instanceof UnreadableItem && record.team === team) return refusal(unreadableIssue('run', record));
  if (!(record instanceof UnreadableItem) && record?.team === team) return record;
  const text = {
    must: `must be a run of team ${team} in environment ${deps.environment}`,
    got: runId,
    fix: 'see slipway list',
  };
  return refusal(issue('run/unknown', 'error', 'run', text));
}

/** A run of the team whose item in the table cannot be read. */
export const unreadableIssue = (path: string, { runId, why }: UnreadableItem): Issue =>
  issue('run/unreadable', 'error', path, {
    must: 'must be readable in the run table',
    got: `${runId}: ${why}`,
    fix: 'see docs/runbooks/unreadable.md',
  });

/** A refusal when no run may start or resume because the stack is being deleted; otherwise undefined. */
export async function closedRefusal(deps: ControlDeps): Promise<Refusal | undefined> {
  if (!(await deps.store.isClosed())) return undefined;
  const text = { must: 'must not be one that is being deleted', got: deps.environment, fix: 'deploy it again first' };
  return refusal(issue('environment/closed', 'error', 'environment', text));
}

/** A refusal when the team's budget for the month is spent, so that it may not start or resume runs; otherwise undefined. */
export async function budgetRefusal(deps: ControlDeps, team: string): Promise<Refusal | undefined> {
  const spent = await spentBudget(deps, await readDescriptor(deps, team));
  if (!spent) return undefined;
  const { spentUsd, budgetUsd, until } = spent;
  return refusal(
    issue('guardrails/team-budget', 'error', `teams.${team}.budgetUsdPerMonth`, {
      must: `must not be spent: ${budgetUsd} USD this month`,
      got: `${spentUsd.toFixed(2)} USD in the ledger of runs`,
      fix: `wait until ${until.toISOString().slice(0, 10)}, or ask the platform team for a larger budget`,
    }),
  );
}
