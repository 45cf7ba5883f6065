import { memoryIssues } from '../../core/admission';
import { bareIssue, issue } from '../../core/config/issue';
import type { RunSpec } from '../../core/config/run-spec';
import type { DatePlanAnswer, PlanRequest, Refusal } from '../../core/contracts/control';
import { isOneType, MAX_DAYS_AHEAD, planNeeds, runOffers } from '../../core/planner/deadline/by-date';
import type { RunPlan } from '../../core/planner/run/plan-run';
import { begunOf, HISTORY, historyOf } from '../../report/read/capacity-history';
import { eachInTurn } from '../../shared/aws/pace';
import type { ReadDeps } from './deps';
import { listRuns, statusOf } from './reads/status';

const DAY_MS = 86_400_000;

interface Requested extends Pick<PlanRequest, 'trainingPlans'> {
  run: RunSpec;
  plan: RunPlan;
  /** Epoch milliseconds. */
  by: number;
}

/** The answer to `slipway plan --by`, from the team's own runs and the training plan offerings that the caller found. Buys nothing. */
export async function planByDate(
  deps: ReadDeps,
  team: string,
  { run, plan, by, trainingPlans }: Requested,
): Promise<DatePlanAnswer | Refusal> {
  const now = deps.now().getTime();
  const refused = (issues: Parameters<typeof bareIssue>[0][]): Refusal => ({
    ok: false,
    issues: issues.map(bareIssue),
  });
  if (by <= now || by > now + MAX_DAYS_AHEAD * DAY_MS)
    return refused([
      issue('plan/by', 'error', 'by', {
        must: `must be a time of the next ${MAX_DAYS_AHEAD} days`,
        got: new Date(by).toISOString(),
        fix: 'give a later or an earlier one',
      }),
    ]);
  if (plan.fits === 'oom') return refused(memoryIssues(run, deps.region));
  const needs = planNeeds(run, plan);
  if (Array.isArray(needs)) return refused(needs);
  const history = await readHistory(deps, team, needs.instanceType);
  const plans = trainingPlans.map((one) => ({
    ...one,
    blocks: one.blocks.map(({ from, to }) => ({ from: Date.parse(from), to: Date.parse(to) })),
  }));
  const offers = runOffers(plan, needs, { now, by, history, plans });
  return { ok: true, byDate: { by: new Date(by).toISOString(), offers }, needs: isOneType(run) ? needs : null };
}

async function readHistory(deps: ReadDeps, team: string, instanceType: string) {
  const { runs } = await listRuns(deps, team, { action: 'list', limit: HISTORY.runs });
  const wanted = { timeline: true, configuration: true };
  const statuses = await eachInTurn(begunOf(runs), HISTORY.atOnce, ({ runId }) =>
    statusOf(deps, team, { runId, ...wanted }),
  );
  return historyOf(
    statuses.filter((status) => status.ok),
    instanceType,
  );
}
