import { monthOf, monthSpendUsd, touches } from '../../lifecycle/accounting/month-spend';
import type { RunRecord } from '../../lifecycle/record';
import type { Descriptor } from '../../spec/descriptor';
import type { RunStore } from './run-store';

/** Number of a team's newest runs whose spend counts, besides those that are not over. */
const MOST_RUNS = 1000;

/** A budget that has been spent. */
export interface SpentBudget {
  spentUsd: number;
  budgetUsd: number;
  /** Start of the next month, UTC. */
  until: Date;
}

interface BudgetDeps {
  store: Pick<RunStore, 'ofTeam' | 'active' | 'attempts'>;
  now(): Date;
}

/** Spend of a team since the start of the month according to the ledger of its runs, USD. */
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

/** The record contains the newest attempt, which for most runs is the only one. */
async function attemptsOf(store: BudgetDeps['store'], run: RunRecord) {
  if (!run.attempt) return [];
  if (run.attempt.number === 1) return [run.attempt];
  const earlier = (await store.attempts(run.runId)).filter(({ number }) => number !== run.attempt?.number);
  return [...earlier, run.attempt];
}

/**
 * The team's budget if all of it is spent. Undefined while some is left, or if the team has no budget, in which case nothing is read.
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
