import { findCapacityPrice, type PricedCapacity } from '../../catalog/prices/capacity-prices';
import { findPrice, type Price } from '../../catalog/prices/prices';
import { requestedGroupsOf } from '../../config/resolve-run';
import type { RunSpec } from '../../config/run-spec';

/**
 * Cost of a run with one kind of capacity, USD; null = no price known, or a run without an end. `note` says which price was used, and its
 * date.
 */
export interface CapacityCost {
  usd: number | null;
  perHour: number | null;
  note: string;
}

/** Cost of the whole run by kind of capacity, USD. */
export interface RunCost {
  onDemand: number | null;
  perHour: number | null;
  basis: Price['basis'] | null;
  note: string;
  spot: CapacityCost;
  trainingPlan: CapacityCost;
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
export function runCost(run: RunSpec, facts: PriceFacts, hours: number | null): RunCost {
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

function costOf(run: RunSpec, facts: PriceFacts, hours: number | null, { what, find }: PriceList): CapacityCost {
  const groups = requestedGroupsOf(run.compute).map((g) => ({ ...g, price: find(g.instanceType) }));
  const unknown = groups.filter((g) => g.price === undefined).map((g) => g.instanceType);
  if (unknown.length > 0)
    return { usd: null, perHour: null, note: `no ${what} known for ${unknown.join(', ')} in ${facts.region}` };
  const perHour = groups.reduce((sum, g) => sum + g.instanceCount * (g.price?.usdPerHour ?? 0), 0);
  return { usd: hours === null ? null : hours * perHour, perHour, note: groups[0]?.price?.note ?? '' };
}
