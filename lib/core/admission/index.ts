import { findPrice } from '../catalog/prices/prices';
import type { Descriptor } from '../config/descriptor';
import { type Issue, issue } from '../config/issue';
import { onAlternative, onInstances, requestedGroupsOf } from '../config/resolve-run';
import type { RunSpec } from '../config/run-spec';
import { stateGiB } from '../planner/plan';
import { type NeuronPlan, planNeuron } from '../planner/run/neuron';
import { planRun } from '../planner/run/plan-run';
import { freeOf, judgeForDeploy, type Limits, neededToStart, type QuotaRow, runQuotaNeeds } from '../quota';
import { checkRun } from '../rules';
import { elasticSizes } from '../rules/compute/hosts';

export * from './training-plan';

/** Waiting does not help above the limit; if only the free capacity is exceeded, the run waits in the queue. */
const isAboveLimit = (row: QuotaRow): boolean => row.limit !== null && row.needed > row.limit;

/** Issues of a launch from a table of needs: an error above a limit, a warning if the run has to wait or a value is unknown. */
export function quotaIssues(rows: readonly QuotaRow[]): Issue[] {
  return rows.filter((row) => row.verdict !== 'enough').map(quotaIssue);
}

function quotaIssue(row: QuotaRow): Issue {
  const quota = `quota ${row.name}${row.code ? `, ${row.code}` : ''}`;
  const found = (level: 'error' | 'warning', must: string, fix: string) =>
    issue('quota/limit', level, row.wantedBy, { must, got: row.needed, fix });
  if (row.limit === null) return found('warning', `must be known: ${row.name}`, row.reason);
  if (row.isOptional) {
    return issue('quota/limit', 'warning', 'compute.keepAliveSeconds', {
      must: `must find ${row.needed} instances free (${quota}), without which SageMaker keeps no warm pool`,
      got: freeOf(row.limit, row.inUse ?? 0),
      fix: 'request an increase with slipway quota FILE --request, or remove it',
    });
  }
  if (isAboveLimit(row)) {
    return found(
      'error',
      `must be at most ${row.limit} (${quota})`,
      `${row.wantedBy.startsWith('compute.alternatives') ? 'leave it out, ' : ''}lower it, or request an increase with slipway quota FILE --request`,
    );
  }
  const free = row.limit - (row.inUse ?? 0);
  return found('warning', `must be at most ${free} (${quota})`, 'wait for running jobs to end, or lower it');
}

interface AdmissionFacts {
  descriptor: Descriptor;
  region: string;
  /** Applied limits by quota name; a quota that is missing is unknown and blocks nothing. */
  limits: Limits;
  /** A person has confirmed the launch although the price is unknown. */
  acceptsUnknownPrice: boolean;
}

/**
 * Checks memory, price, cost, quota, guardrails and all other rules for one launch, in the same way for the command line, the control plane
 * and simulations. Needs that exceed only the free capacity are not errors: such a run waits in the queue.
 * @returns errors and warnings, and the quota rows on which they are based
 */
export function judgeAdmission(run: RunSpec, { descriptor, region, limits, acceptsUnknownPrice }: AdmissionFacts) {
  const quota = judgeForDeploy(runQuotaNeeds(run), limits);
  const prices = { ...descriptor, region };
  const issues = [
    ...checkRun(run, { descriptor, region }),
    ...priceIssues(run, prices, acceptsUnknownPrice),
    ...memoryIssues(run, region),
    ...plannedCostIssues(run, prices),
    ...limitIssues(run, quota, limits),
  ];
  return { issues, quota };
}

/**
 * The run with the largest number of instances within the limits; with its smallest number if no size is within them; unchanged if it is
 * not elastic.
 */
export function withinLimits(run: RunSpec, limits: Limits): RunSpec {
  const sizes = elasticSizes(run).map((count) => onInstances(run, count));
  const isAllowed = (sized: RunSpec) => !judgeForDeploy(neededToStart(runQuotaNeeds(sized)), limits).some(isAboveLimit);
  return sizes.find(isAllowed) ?? sizes.at(-1) ?? run;
}

/** Quota issues of a launch: for an elastic run an error if even its smallest size is above a limit, otherwise a warning. */
export function limitIssues(run: RunSpec, rows: readonly QuotaRow[], limits: Limits): Issue[] {
  const sized = withinLimits(run, limits);
  if (sized.compute.instanceCount === run.compute.instanceCount) return quotaIssues(rows.filter(isAboveLimit));
  const above = judgeForDeploy(runQuotaNeeds(sized), limits).filter(isAboveLimit);
  if (above.length > 0) return quotaIssues(above);
  return rows.filter(isAboveLimit).map((row) =>
    issue('quota/limit', 'warning', row.wantedBy, {
      must: `must be at most ${row.limit} (quota ${row.name}${row.code ? `, ${row.code}` : ''}) for all of its instances`,
      got: row.needed,
      fix: `it starts with at most ${sized.compute.instanceCount}; request an increase with slipway quota FILE --request`,
    }),
  );
}

/** The cluster as written, and one for each alternative that the service may choose instead, with the option that selects it. */
function shapesOf(run: RunSpec) {
  const alternatives = run.compute.alternatives.map((alternative, i) => ({
    path: `compute.alternatives[${i}].instanceType`,
    run: onAlternative(run, alternative),
  }));
  return [{ path: 'training', run }, ...alternatives];
}

/**
 * GiB needed and available of a kind of device, and possible remedies, when the planner supports the run and it cannot fit; undefined in
 * every other case.
 */
function shortfall(run: RunSpec, region: string) {
  const neuron = planNeuron(run);
  if (neuron !== undefined) return Array.isArray(neuron) ? undefined : shortfallOfCores(neuron);
  const plan = planRun(run, { region });
  if (Array.isArray(plan) || plan.fits !== 'oom') return undefined;
  const advice = plan.advice.map((a) => a.change).join(', or ');
  return { needed: plan.memoryGiB.total, available: plan.memoryGiB.available, of: 'GPU', advice };
}

/** The case in which weights, gradients and optimizer do not fit into all NeuronCores together. */
function shortfallOfCores({ fits, layouts, coreGiB }: NeuronPlan) {
  if (fits !== 'oom') return undefined;
  const needed = Math.min(...layouts.map(({ memoryGiB }) => stateGiB(memoryGiB)));
  return { needed, available: coreGiB, of: 'NeuronCore', advice: 'use more instances' };
}

/** Issues for every cluster that the run may get and into which it does not fit. Clusters that the planner does not support are skipped. */
export function memoryIssues(run: RunSpec, region: string): Issue[] {
  return shapesOf(run).flatMap(({ path, run: shape }) => {
    const short = shortfall(shape, region);
    if (!short) return [];
    return issue('plan/memory', 'error', path, {
      must: `must fit the ${short.available.toFixed(0)} GiB of one ${short.of} of ${shape.compute.instanceType || 'its groups'}`,
      got: `${short.needed.toFixed(0)} GiB`,
      fix:
        path === 'training'
          ? short.advice || 'use more instances, or a smaller batch'
          : 'leave it out, or plan it with more instances',
    });
  });
}

/** Whether the run's layout fits into GPU memory according to the planner; true if the planner cannot tell. */
export const fitsMemory = (run: RunSpec, region: string): boolean => shortfall(run, region) === undefined;

/** The run without the alternatives into which it does not fit, so that the request is based on current knowledge. */
export function withFittingAlternatives(run: RunSpec, region: string): RunSpec {
  const alternatives = run.compute.alternatives.filter((alternative) =>
    fitsMemory(onAlternative(run, alternative), region),
  );
  return alternatives.length === run.compute.alternatives.length
    ? run
    : { ...run, compute: { ...run.compute, alternatives } };
}

/** Inputs of the price look-up: the region, and the environment's own rates. */
export type PriceFacts = Pick<Descriptor, 'region' | 'prices'>;

/** On-demand price of all hosts of a job, USD per hour, with a note on each figure; undefined when a price is not known. */
export function clusterUsdPerHour(run: RunSpec, facts: PriceFacts): { usd: number; notes: string[] } | undefined {
  let usd = 0;
  const notes = new Set<string>();
  for (const group of requestedGroupsOf(run.compute)) {
    const price = findPrice(group.instanceType, facts.region, facts.prices);
    if (!price) return undefined;
    usd += price.usdPerHour * group.instanceCount;
    notes.add(`${group.instanceType}: ${price.note}`);
  }
  return { usd, notes: [...notes] };
}

/** The environment, which may limit the cost of each run and of all runs of a team in a month. */
type CostGuard = Partial<Pick<Descriptor, 'name' | 'guardrails' | 'budget'>>;

/**
 * A run with an unknown price needs a cap or a person's consent; where the environment limits what runs cost, it needs a price.
 * Nothing can apply the cap of a run without a price, which is a warning.
 */
export function priceIssues(run: RunSpec, facts: PriceFacts & CostGuard, acceptsUnknownPrice: boolean): Issue[] {
  const types = [...requestedGroupsOf(run.compute), ...run.compute.alternatives].map((g) => g.instanceType);
  const unpriced = types.find((type) => !findPrice(type, facts.region, facts.prices));
  if (unpriced === undefined) return [];
  const refused = (must: string, fix: string) => [
    issue('price/unknown', 'error', 'compute.instanceType', { must, got: unpriced, fix }),
  ];
  const limited =
    facts.guardrails?.maxCostPerRunUsd === undefined
      ? facts.budget && 'team budget limits what runs cost'
      : 'guardrails limit what a run costs';
  if (limited)
    return refused(
      `must have a known price in environment ${facts.name}, whose ${limited}`,
      'ask the platform team to add the rate to the environment (prices:)',
    );
  if (run.limits.maxCostUsd !== undefined)
    return [
      issue('price/unknown', 'warning', 'limits.maxCostUsd', {
        must: 'must have a known price to stop the run',
        got: `none for ${unpriced}`,
        fix: 'add the rate to the environment (prices:); without it, only limits.maxRuntimeSeconds and limits.maxAttempts end the run',
      }),
    ];
  if (acceptsUnknownPrice) return [];
  return refused(
    'must have a known price, or the launch must say that it goes on without one',
    'add the rate to the environment (prices:), confirm the question, or set limits.maxCostUsd for a launch with --yes',
  );
}

/**
 * A plan that costs more than the cap would stop at the cap before its last step, so it is rejected before it costs anything. The warm pool
 * that the last job leaves counts too.
 */
export function plannedCostIssues(run: RunSpec, facts: PriceFacts & CostGuard): Issue[] {
  const own = run.limits.maxCostUsd ?? Number.POSITIVE_INFINITY;
  const most = facts.guardrails?.maxCostPerRunUsd ?? Number.POSITIVE_INFINITY;
  const cap = Math.min(own, most);
  const usd = cap === Number.POSITIVE_INFINITY ? null : plannedUsd(run, facts);
  if (usd === null || usd <= cap) return [];
  // What spot will cost is not known, and a run without spot capacity takes on-demand instances.
  const isSpot = run.compute.capacity === 'spot';
  const must = `must be at least the $${Math.ceil(usd)} that the whole run is planned to cost${isSpot ? ' on demand' : ''}`;
  const level = isSpot ? 'warning' : 'error';
  const [path, fix] =
    own <= most
      ? ['limits.maxCostUsd', 'raise it, or train for fewer steps (slipway plan has the numbers)']
      : [
          'guardrails.maxCostPerRunUsd',
          'train for fewer steps (slipway plan has the numbers), or ask the platform team',
        ];
  return [issue('limits/planned-cost', level, path, { must, got: cap, fix })];
}

/** Planned cost of the whole run with the warm pool that it leaves, USD; null while it is not known. */
function plannedUsd(run: RunSpec, facts: PriceFacts): number | null {
  const plan = planRun(run, { region: facts.region, prices: facts.prices });
  const usd = Array.isArray(plan) ? null : plan.usd.onDemand;
  if (usd === null) return null;
  return usd + ((clusterUsdPerHour(run, facts)?.usd ?? 0) * run.compute.keepAliveSeconds) / 3600;
}
