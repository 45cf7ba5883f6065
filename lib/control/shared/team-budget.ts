import type { Descriptor } from '../../core/config/descriptor';
import { liveMonthUsd, monthOf } from '../../core/lifecycle/accounting/month-spend';
import type { RunRecord } from '../../core/lifecycle/record';
import type { RunStore } from './run-store';

interface BudgetDeps {
  store: Pick<RunStore, 'active' | 'findMonthUsd'>;
  now(): Date;
}

/** Spend of a team since the start of the month, USD: what is booked for its runs, and what live jobs have cost so far. */
export async function teamSpendUsd(
  { store, now }: BudgetDeps,
  team: string,
  known?: readonly RunRecord[],
): Promise<number> {
  const at = now().getTime();
  const month = monthOf(at);
  // In this order a job that ends in between is counted twice, and never not at all.
  const live = (known ?? (await store.active())).filter((run) => run.team === team);
  const booked = await store.findMonthUsd(team, month.name);
  return live.reduce((sum, run) => sum + liveMonthUsd(run, month, at), booked);
}

/**
 * The team's budget if all of it is spent. Undefined while some is left, or if the team has no budget, in which case nothing is read.
 * @param active all runs that are not over. @default - they are read
 */
export async function spentBudget(deps: BudgetDeps, { team, budget }: Descriptor, active?: readonly RunRecord[]) {
  if (!budget) return undefined;
  const spentUsd = await teamSpendUsd(deps, team, active);
  if (spentUsd < budget.usdPerMonth) return undefined;
  return { spentUsd, budgetUsd: budget.usdPerMonth, until: new Date(monthOf(deps.now().getTime()).end) };
}

/** A budget that has been spent. */
export type SpentBudget = NonNullable<Awaited<ReturnType<typeof spentBudget>>>;
