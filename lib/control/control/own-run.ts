import { plainLine } from '../../core/config/formats/plain-text';
import { formatPath, type Issue, issue } from '../../core/config/issue';
import type { Refusal } from '../../core/contracts/control';
import { runCommand } from '../../core/contracts/names';
import { isOver, type RunRecord } from '../../core/lifecycle/record';
import { runbookAddress } from '../../core/lifecycle/timeline';
import { readDescriptor } from '../shared/descriptors';
import { UnreadableItem } from '../shared/stored';
import { type SpentBudget, spentBudget } from '../shared/team-budget';
import type { ControlDeps, ReadDeps } from './deps';

export const refusal = (...issues: Issue[]): Refusal => ({ ok: false, issues });

/** Finds a run of this team. A run of another team is treated as if it did not exist, so that run ids are not disclosed. */
export async function findOwnRun(deps: ReadDeps, team: string, runId: string): Promise<RunRecord | Refusal> {
  const record = await deps.store.findOrUnreadable(runId);
  if (record instanceof UnreadableItem && record.team === team) return refusal(unreadableIssue('run', record));
  if (!(record instanceof UnreadableItem) && record?.team === team) return record;
  const text = {
    must: `must be a run of team ${team} in environment ${deps.environment}`,
    got: runId,
    fix: 'see slipway list',
  };
  return refusal(issue('run/unknown', 'error', 'run', text));
}

/** The issue of a request that must wait until the run has no live job. */
export const liveIssue = (
  { runId, state, environment, team }: RunRecord,
  region: string,
  { rule, must }: { rule: string; must: string },
): Issue =>
  issue(rule, 'error', 'run', {
    must,
    got: `${runId}, ${state}`,
    fix: `run ${runCommand('stop', runId, { name: environment, team, region })} first`,
  });

export const unreadableIssue = (path: string, { runId, why }: UnreadableItem): Issue =>
  issue('run/unreadable', 'error', path, {
    must: 'must be readable in the run table',
    got: `${runId}: ${why}`,
    fix: `see ${runbookAddress('unreadable')}`,
  });

/** A refusal when no run may start or resume because the stack is being deleted, or updated in a way that would affect it; otherwise undefined. */
export async function closedRefusal(deps: ControlDeps): Promise<Refusal | undefined> {
  if (!(await deps.store.isClosed())) return undefined;
  const text = {
    must: 'must not be one that is being deleted, or updated in a way that replaces role, network or key, or removes a team or zone',
    got: deps.environment,
    fix: 'try again after the update, or deploy the environment again',
  };
  return refusal(issue('environment/closed', 'error', 'environment', text));
}

/** Runs of a team that have not ended: each pass of the queue, which serves all teams, reads every one that waits. */
const MAX_LIVE_RUNS = 2000;

/**
 * A refusal when the team may have no further live run, because its budget for the month is spent or too many of its runs have not ended;
 * otherwise undefined.
 */
export async function anotherRunRefusal(deps: ControlDeps, team: string): Promise<Refusal | undefined> {
  const active = await deps.store.active();
  const spent = await spentBudget(deps, await readDescriptor(deps, team), active);
  if (spent) return refusal(budgetIssue(team, spent));
  const live = active.filter((run) => run.team === team && !isOver(run)).length;
  return live < MAX_LIVE_RUNS ? undefined : refusal(liveRunsIssue(team, live));
}

const budgetIssue = (team: string, { budgetUsd, spentUsd, until }: SpentBudget): Issue =>
  issue('guardrails/team-budget', 'error', `teams.${team}.budgetUsdPerMonth`, {
    must: `must not be spent: ${budgetUsd} USD this month`,
    got: `${spentUsd.toFixed(2)} USD in the ledger of runs`,
    fix: `wait until ${until.toISOString().slice(0, 10)}, or ask the platform team for a larger budget`,
  });

const liveRunsIssue = (team: string, got: number): Issue =>
  issue('guardrails/live-runs', 'error', `runs of team ${team}`, {
    must: `must be at most ${MAX_LIVE_RUNS} that have not ended`,
    got,
    fix: 'stop those that are not needed; see slipway list --active',
  });

/**
 * Refusal of a call that did not come through the alias of a team.
 * @param key of the descriptor that holds the right alias
 */
export const aliasRefusal = (got: string, key: 'controlAliasArn' | 'auditAliasArn'): Refusal =>
  refusal(
    issue('control/alias', 'error', '', {
      must: 'must be invoked through the alias of a team (team-<name>)',
      got,
      fix: `use ${key} of the descriptor`,
    }),
  );

/** Characters of a value in a message. */
const MAX_SHOWN = 100;

/** One error in a payload, from a zod issue, with the value that was given (parse with `reportInput: true`). */
export function payloadIssue({
  path,
  message,
  input,
}: {
  path: PropertyKey[];
  message: string;
  input?: unknown;
}): Issue {
  // For an unknown action zod reports the whole payload as the input.
  const got = typeof input === 'object' && input !== null ? Reflect.get(input, path.at(-1) ?? '') : input;
  const fix = 'correct it, or use a command line of the version of the environment';
  const text = {
    must: message,
    ...(['string', 'number', 'boolean'].includes(typeof got) && { got: plainLine(String(got), MAX_SHOWN) }),
    fix,
  };
  return issue('control/payload', 'error', formatPath(path), text);
}
