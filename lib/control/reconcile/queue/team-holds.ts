import type { RunRecord } from '../../../core/lifecycle/record';
import { readDescriptor } from '../../shared/descriptors';
import { describeError } from '../../shared/errors';
import { isQueued } from '../../shared/queue-runs';
import { spentBudget } from '../../shared/team-budget';
import type { ReconcileDeps } from '../deps';

/** The reason why a team may not start new runs, by team. */
export type TeamHolds = ReadonlyMap<string, string>;

/** The teams of waiting runs whose monthly budget is spent. A budget that cannot be read counts as spent until it can. */
export async function teamHolds(deps: ReconcileDeps, active: readonly RunRecord[]): Promise<TeamHolds> {
  const found = await Promise.all(
    newTeams(active).map(async (team) => [team, await holdOfTeam(deps, team, active)] as const),
  );
  return new Map(found.flatMap(([team, why]) => (why === undefined ? [] : [[team, why]])));
}

/** Teams with waiting runs that have had no attempt. */
export const newTeams = (active: readonly RunRecord[]): string[] => [
  ...new Set(active.filter((run) => isQueued(run) && isNew(run)).map(({ team }) => team)),
];

async function holdOfTeam(
  deps: ReconcileDeps,
  team: string,
  active: readonly RunRecord[],
): Promise<string | undefined> {
  try {
    const spent = await spentBudget(deps, await readDescriptor(deps, team), active);
    if (!spent) return undefined;
    const until = spent.until.toISOString().slice(0, 10);
    return `waits for ${until}: team ${team} has spent its budget of ${spent.budgetUsd} USD a month`;
  } catch (error) {
    deps.log('error', 'the budget of a team could not be read', { team, error: describeError(error) });
    return `waits: the budget of team ${team} cannot be read`;
  }
}

/** A run that has had an attempt continues: otherwise what it has spent would be lost. */
const isNew = ({ attempt }: RunRecord): boolean => attempt === undefined;

/** The reason for the queue to hold back a new run of such a team. */
export function holdOf(run: RunRecord, holds: TeamHolds): { hold?: string } {
  const hold = isNew(run) ? holds.get(run.team) : undefined;
  return hold === undefined ? {} : { hold };
}
