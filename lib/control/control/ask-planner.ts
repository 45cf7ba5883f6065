import { memoryIssues, planDocument } from '../../core/admission';
import type { Descriptor } from '../../core/config/descriptor';
import { bareIssue, hasErrors, issue } from '../../core/config/issue';
import { loadRun } from '../../core/config/load';
import type { RunSpec } from '../../core/config/run-spec';
import type {
  DatePlanAnswer,
  PlanAnswer,
  PlanRequest,
  Refusal,
  ValidateAnswer,
  ValidateRequest,
} from '../../core/contracts/control';
import { isOneType, MAX_DAYS_AHEAD, planNeeds, runOffers } from '../../core/planner/deadline/by-date';
import type { RunPlan } from '../../core/planner/run/plan-run';
import { checkRun } from '../../core/rules';
import { begunOf, HISTORY, historyOf } from '../../report/read/capacity-history';
import { eachInTurn } from '../../shared/aws/pace';
import { readDescriptor } from '../shared/descriptors';
import type { ControlDeps, ReadDeps } from './deps';
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

/** The result of `slipway validate` for the run in the team's environment. The code folder is not available here and is not checked. */
export async function validateRun(
  deps: Pick<ControlDeps, 'ssm' | 'environment' | 'region' | 'now'>,
  team: string,
  { runFile, overrides }: ValidateRequest,
): Promise<ValidateAnswer> {
  const { run, issues } = check(runFile, overrides, await readDescriptor(deps, team), deps.region);
  return { ok: true, isValid: !hasErrors(issues), issues: issues.map(bareIssue), codeSource: run?.code.source ?? null };
}

/** The output of `slipway plan --json`, at the environment's own prices. */
export async function planOfRun(
  deps: ReadDeps,
  team: string,
  { runFile, overrides, by, trainingPlans }: PlanRequest,
): Promise<PlanAnswer | DatePlanAnswer | Refusal> {
  const descriptor = await readDescriptor(deps, team);
  const { run, issues } = check(runFile, overrides, descriptor, deps.region);
  if (!run || hasErrors(issues)) return { ok: false, issues: issues.map(bareIssue) };
  const plan = planDocument(run, { region: deps.region, prices: descriptor.prices });
  if (Array.isArray(plan)) return { ok: false, issues: plan.map(bareIssue) };
  if (by !== undefined) return planByDate(deps, team, { run, plan, by: Date.parse(by), trainingPlans });
  return { ok: true, plan };
}

function check(text: string, overrides: readonly string[], descriptor: Descriptor, region: string) {
  const loaded = loadRun(text, overrides);
  const run = loaded.value;
  return { run, issues: [...loaded.issues, ...(run ? checkRun(run, { descriptor, region }) : [])] };
}
