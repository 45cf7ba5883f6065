import { findPrice } from '../catalog/prices/prices';
import type { Descriptor } from '../config/descriptor';
import { type Issue, issue } from '../config/issue';
import { requestedAlternativesOf, requestedGroupsOf } from '../config/resolve-run';
import type { RunSpec } from '../config/run-spec';
import { planRun } from '../planner/run/plan-run';

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

/** The environment whose guardrails limit the cost of a run. */
type CostGuard = Partial<Pick<Descriptor, 'name' | 'guardrails'>>;

/** A run with an unknown price needs a cost limit; where the environment limits the cost of every run, it needs a price. */
export function priceIssues(run: RunSpec, facts: PriceFacts & CostGuard, acceptsUnknownPrice: boolean): Issue[] {
  const [unpriced] = unpricedTypes(run, facts);
  if (unpriced === undefined) return [];
  const refused = (must: string, fix: string) => [
    issue('price/unknown', 'error', 'compute.instanceType', { must, got: unpriced, fix }),
  ];
  if (facts.guardrails?.maxCostPerRunUsd !== undefined)
    return refused(
      `must have a known price in environment ${facts.name}, whose guardrails limit what a run costs`,
      'ask the platform team to add the rate to the environment (prices:)',
    );
  if (run.limits.maxCostUsd !== undefined || acceptsUnknownPrice) return [];
  return refused(
    'must have a known price, or the launch must say that it goes on without one',
    'set limits.maxCostUsd, add the rate to the environment (prices:), or confirm the question',
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
  const must = `must be at least the $${Math.ceil(usd)} that the whole run is planned to cost`;
  return [
    own <= most
      ? issue('limits/planned-cost', 'error', 'limits.maxCostUsd', {
          must,
          got: cap,
          fix: 'raise it, or train for fewer steps (slipway plan has the numbers)',
        })
      : issue('limits/planned-cost', 'error', 'guardrails.maxCostPerRunUsd', {
          must,
          got: cap,
          fix: 'train for fewer steps (slipway plan has the numbers), or ask the platform team',
        }),
  ];
}

/** Planned cost of the whole run with the warm pool that it leaves, USD; null while it is not known. */
function plannedUsd(run: RunSpec, facts: PriceFacts): number | null {
  const plan = planRun(run, { region: facts.region, prices: facts.prices });
  const usd = Array.isArray(plan) ? null : plan.usd.onDemand;
  if (usd === null) return null;
  return usd + ((clusterUsdPerHour(run, facts)?.usd ?? 0) * run.compute.keepAliveSeconds) / 3600;
}
