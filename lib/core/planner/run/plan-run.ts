import { activeParameterCount, parameterCount } from '../../catalog/model/parameters';
import { findCapacityPrice, findPrice, type Price, type PricedCapacity } from '../../catalog/prices/prices';
import { type Issue, issue } from '../../config/issue';
import { requestedGroupsOf } from '../../config/resolve-run';
import type { RunSpec } from '../../config/run-spec';
import { type LayoutInput, tokensPerStep, worldSizeOf } from '../layout';
import { type LayoutPlan, planLayout } from '../plan';
import { type Advice, adviceFor } from './advice';
import { layoutOfRun } from './layout-of-run';
import { recoveryPlan } from './recovery';

/** Bounds of an 80 % interval. */
type Interval = [low: number, high: number];

/** The output of `slipway plan --json`; the screen and the page are rendered from it. */
export type RunPlan = ReturnType<typeof describe> & { assumptions: string[]; advice: Advice[] };

/** The plan of a run, or the issues that prevent it. */
export function planRun(run: RunSpec, facts: PriceFacts): RunPlan | Issue[] {
  const mapped = layoutOfRun(run);
  if (Array.isArray(mapped)) return mapped;
  const { layout, assumptions } = mapped;
  const plan = planLayout(layout);
  if (typeof plan === 'string') {
    return [
      issue('plan/layout', 'error', 'distribution.parameters', {
        must: 'must describe a layout that can run',
        got: plan,
        fix: 'change the degrees or the batch sizes',
      }),
    ];
  }
  return {
    ...describe(run, facts, layout, plan),
    assumptions,
    advice: adviceFor(layout, plan, run.distribution.library),
  };
}

function describe(run: RunSpec, facts: PriceFacts, layout: LayoutInput, plan: LayoutPlan) {
  const { memoryGiB, availableGiB, step, interval80: _, ...figures } = plan;
  const gpus = worldSizeOf(layout);
  const recovery = recoveryPlan(run, layout, step.total);
  const { steps, tokens } = lengthOf(run, layout);
  const hours = steps === null ? null : (steps * step.total) / 3600;
  const wallHours = hours === null ? null : hours / recovery.goodput;
  const usd = runCost(run, facts, wallHours);
  return {
    ...figures,
    /** GiB by component on the fullest GPU, their total, and the available GiB. */
    memoryGiB: { ...memoryGiB, available: availableGiB },
    stepSeconds: step.total,
    tokensPerSecond: plan.tokensPerSecondPerGpu * gpus,
    parameters: parameterCount(layout.model),
    /** Parameters without the experts that do not process a token. */
    activeParameters: activeParameterCount(layout.model),
    steps,
    tokens,
    /** Training hours without failures; null when the run has no end. */
    hours,
    /** The same including saves, failures and restarts. */
    wallHours,
    usd,
    interval80: intervalsOf(plan, hours, usd.onDemand),
    breakdown: step,
    ...recovery,
    gpus,
    layout,
  };
}

function intervalsOf(plan: LayoutPlan, hours: number | null, usd: number | null) {
  const slow = plan.tokensPerSecondPerGpu / plan.interval80[0];
  const fast = plan.tokensPerSecondPerGpu / plan.interval80[1];
  const around = (value: number | null): Interval | null => (value === null ? null : [value * fast, value * slow]);
  return {
    tokensPerSecondPerGpu: plan.interval80,
    stepSeconds: [plan.step.total * fast, plan.step.total * slow] as Interval,
    hours: around(hours),
    usd: around(usd),
  };
}

/** Steps and tokens of the whole run; null when the run gives neither. */
function lengthOf(run: RunSpec, layout: LayoutInput): { steps: number | null; tokens: number | null } {
  const inOneStep = tokensPerStep(layout);
  const { steps, totalTokens } = run.training;
  if (steps !== undefined) return { steps, tokens: steps * inOneStep };
  if (totalTokens !== undefined) return { steps: Math.ceil(totalTokens / inOneStep), tokens: totalTokens };
  return { steps: null, tokens: null };
}

/** Inputs of the price look-up. */
export interface PriceFacts {
  region: string;
  /** The environment's own rates, USD per instance-hour. */
  prices?: Readonly<Record<string, number>>;
}

/** Prices of one kind, and their name in notes. */
interface PriceList {
  what: string;
  find: (instanceType: string) => Pick<Price, 'usdPerHour' | 'note'> | undefined;
}

/** Cost of all hosts of the job for `hours`, including spare hosts; also for spot and training plans, if a price has been seen. */
function runCost(run: RunSpec, facts: PriceFacts, hours: number | null) {
  const find = (instanceType: string) => findPrice(instanceType, facts.region, facts.prices);
  const { usd, ...onDemand } = costOf(run, facts, hours, { what: 'price', find });
  const [first] = requestedGroupsOf(run.compute);
  const basis = onDemand.perHour === null || !first ? null : (find(first.instanceType)?.basis ?? null);
  const of = (capacity: PricedCapacity, what: string) =>
    costOf(run, facts, hours, { what, find: (type) => findCapacityPrice(capacity, type, facts.region) });
  return {
    onDemand: usd,
    ...onDemand,
    basis,
    spot: of('spot', 'spot price'),
    trainingPlan: of('training-plan', 'training plan price'),
  };
}

/**
 * Cost of a run with one kind of capacity, USD; null = no price known, or a run without an end. `note` says which price was used, and its
 * date.
 */
function costOf(run: RunSpec, facts: PriceFacts, hours: number | null, { what, find }: PriceList) {
  const groups = requestedGroupsOf(run.compute).map((g) => ({ ...g, price: find(g.instanceType) }));
  const unknown = groups.filter((g) => g.price === undefined).map((g) => g.instanceType);
  if (unknown.length > 0)
    return { usd: null, perHour: null, note: `no ${what} known for ${unknown.join(', ')} in ${facts.region}` };
  const perHour = groups.reduce((sum, g) => sum + g.instanceCount * (g.price?.usdPerHour ?? 0), 0);
  return { usd: hours === null ? null : hours * perHour, perHour, note: groups[0]?.price?.note ?? '' };
}
