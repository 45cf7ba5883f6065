import { type PlanFacts, planRun, type RunPlan } from '../planner/plan-run';
import { findDescriptor } from './environment';
import { EXIT, Refusal } from './exit';
import { type CommonOptions, requireRun } from './inputs';
import { planText } from './plan-text';
import { json, type Terminal } from './terminal';

/** Prices are looked up for this region when neither option nor environment names one. */
const PRICE_REGION = 'us-west-2';

export type PlanOptions = CommonOptions;

/** `slipway plan FILE`: will it fit, how fast, how much. Offline unless `--environment` is a name. */
export async function plan(file: string, options: PlanOptions, terminal: Terminal): Promise<number> {
  const { run } = requireRun(file, options);
  const facts = await planFacts(options);
  const result = planRun(run, facts);
  if (Array.isArray(result)) throw new Refusal(result);
  if (options.json) terminal.out(json(result));
  else terminal.out(planText(run, result));
  return result.fits === 'oom' ? EXIT.refused : EXIT.done;
}

/** Region and own rates of the environment, where one is named. */
async function planFacts(options: PlanOptions): Promise<PlanFacts> {
  const descriptor = options.environment === undefined ? undefined : await findDescriptor(options);
  return { region: options.region ?? descriptor?.region ?? PRICE_REGION, prices: descriptor?.prices };
}

/** The plan of a run that names a model; undefined for runs whose shape is not known. */
export function findPlan(...args: Parameters<typeof planRun>): RunPlan | undefined {
  const result = planRun(...args);
  return Array.isArray(result) ? undefined : result;
}
