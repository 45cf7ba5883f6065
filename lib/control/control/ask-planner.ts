import { planDocument } from '../../core/admission';
import type { Descriptor } from '../../core/config/descriptor';
import { bareIssue, hasErrors } from '../../core/config/issue';
import { loadRun } from '../../core/config/load';
import type { PlanAnswer, PlanRequest, Refusal, ValidateAnswer, ValidateRequest } from '../../core/contracts/control';
import { checkRun } from '../../core/rules';
import { readDescriptor } from '../shared/descriptors';
import type { ControlDeps, ReadDeps } from './deps';

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
  { runFile, overrides }: PlanRequest,
): Promise<PlanAnswer | Refusal> {
  const descriptor = await readDescriptor(deps, team);
  const { run, issues } = check(runFile, overrides, descriptor, deps.region);
  if (!run || hasErrors(issues)) return { ok: false, issues: issues.map(bareIssue) };
  const plan = planDocument(run, { region: deps.region, prices: descriptor.prices });
  if (Array.isArray(plan)) return { ok: false, issues: plan.map(bareIssue) };
  return { ok: true, plan };
}

function check(text: string, overrides: readonly string[], descriptor: Descriptor, region: string) {
  const loaded = loadRun(text, overrides);
  const run = loaded.value;
  return { run, issues: [...loaded.issues, ...(run ? checkRun(run, { descriptor, region }) : [])] };
}
