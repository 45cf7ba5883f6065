import { monthOf, monthSpendUsd, touches } from '../../lifecycle/accounting/month-spend';
import type { RunRecord } from '../../lifecycle/record';
import type { Descriptor } from '../../spec/descriptor';
import type { RunStore } from './run-store';

/** Runs of a team whose spend counts: its newest, and those that are not over. */
const MOST_RUNS = 1000;

/** A budget that is spent. */
export interface SpentBudget {
  spentUsd: number;
  budgetUsd: number;
  /** When the next month begins, UTC. */
  until: Date;
}

interface BudgetDeps {
  store: Pick<RunStore, 'ofTeam' | 'active' | 'attempts'>;
  now(): Date;
}

/** What the ledger of runs says that a team has spent since the month began, USD. */
export async function teamSpendUsd(
  { store, now }: BudgetDeps,
  team: string,
  known?: readonly RunRecord[],
): Promise<number> {
  const at = now().getTime();
  const month = monthOf(at);
  const [newest, active] = await Promise.all([store.ofTeam(team, MOST_RUNS), known ?? store.active()]);
  const own = [...newest, ...active].filter((run) => run.team === team && touches(run, month));
  const runs = [...new Map(own.map((run) => [run.runId, run])).values()];
  const spent = await Promise.all(runs.map(async (run) => monthSpendUsd(run, await attemptsOf(store, run), month, at)));
  return spent.reduce((sum, usd) => sum + usd, 0);
}

/** The record holds the newest attempt: most runs have one. */
async function attemptsOf(store: BudgetDeps['store'], run: RunRecord) {
  if (!run.attempt) return [];
  if (run.attempt.number === 1) return [run.attempt];
  const earlier = (await store.attempts(run.runId)).filter(({ number }) => number !== run.attempt?.number);
  return [...earlier, run.attempt];
}

/**
 * The team's budget when all of it is spent; undefined while something is left, or where it has none, which reads nothing.
 * @param active all runs that are not over. @default - they are read
 */
export async function spentBudget(
  deps: BudgetDeps,
  { team, budget }: Descriptor,
  active?: readonly RunRecord[],
): Promise<SpentBudget | undefined> {
  if (!budget) return undefined;
  const spentUsd = await teamSpendUsd(deps, team, active);
  if (spentUsd < budget.usdPerMonth) return undefined;
  return { spentUsd, budgetUsd: budget.usdPerMonth, until: new Date(monthOf(deps.now().getTime()).end) };
}
