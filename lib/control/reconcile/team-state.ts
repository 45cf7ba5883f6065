import type { RunRecord } from '../../core/lifecycle/record';
import { teamSpendUsd } from '../shared/team-budget';
import type { ReconcileDeps } from './deps';

/** Number of newest runs of a team that a tick reads. */
export const NEWEST_RUNS = 200;

/** What a tick reads of a team. */
export interface TeamState {
  /** Newest first. */
  newest: RunRecord[];
  /** Spend of the calendar month, USD. */
  spentUsd: number;
}

/**
 * Reads the state of teams, of each team once per tick, for its metrics and its page.
 * @param active all runs that are not over
 */
export function teamStates(deps: ReconcileDeps, active: readonly RunRecord[]): (team: string) => Promise<TeamState> {
  const known = new Map<string, Promise<TeamState>>();
  const read = async (team: string): Promise<TeamState> => ({
    newest: await deps.store.ofTeam(team, NEWEST_RUNS),
    spentUsd: await teamSpendUsd(deps, team, active),
  });
  return (team) => {
    const state = known.get(team) ?? read(team);
    known.set(team, state);
    return state;
  };
}
