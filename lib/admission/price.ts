import { findPrice } from '../catalog/prices/prices';
import { planRun } from '../planner/run/plan-run';
import type { Descriptor } from '../spec/descriptor';
import { type Issue, issue } from '../spec/issue';
import { requestedAlternativesOf, requestedGroupsOf } from '../spec/resolve-run';
import type { RunSpec } from '../spec/run-spec';

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

/** Instance types that the service may choose and whose price is unknown. */
function unpricedTypes({ compute }: RunSpec, { region, prices }: PriceFacts): string[] {
  const types = [...requestedGroupsOf(compute), ...requestedAlternativesOf(compute)].map((g) => g.instanceType);
  return [...new Set(types)].filter((type) => !findPrice(type, region, prices));
}

/** A run with an unknown price needs a cost limit. */
export function priceIssues(run: RunSpec, facts: PriceFacts, acceptsUnknownPrice: boolean): Issue[] {
  const [unpriced] = unpricedTypes(run, facts);
  if (unpriced === undefined || run.limits.maxCostUsd !== undefined || acceptsUnknownPrice) return [];
  return [
    issue('price/unknown', 'error', 'compute.instanceType', {
      must: 'must have a known price, or the launch must say that it goes on without one',
      got: unpriced,
      fix: 'set limits.maxCostUsd, add the rate to the environment (prices:), or confirm the question',
    }),
  ];
}

/** A plan that costs more than the cap would stop at the cap before its last step, so it is rejected before it costs anything. */
export function plannedCostIssues(run: RunSpec, { region, prices }: PriceFacts): Issue[] {
  const cap = run.limits.maxCostUsd;
  if (cap === undefined) return [];
  const plan = planRun(run, { region, prices });
  const usd = Array.isArray(plan) ? null : plan.usd.onDemand;
  if (usd === null || usd <= cap) return [];
  return [
    issue('limits/planned-cost', 'error', 'limits.maxCostUsd', {
      must: `must be at least the $${Math.ceil(usd)} that the whole run is planned to cost`,
      got: cap,
      fix: 'raise it, or train for fewer steps (slipway plan has the numbers)',
    }),
  ];
}
