import { findCapacityPrice, type PricedCapacity } from '../../catalog/prices/capacity-prices';
import { findPrice, type Price } from '../../catalog/prices/prices';
import { requestedGroupsOf } from '../../spec/resolve-run';
import type { RunSpec } from '../../spec/run-spec';

/** Dollars of a run under one kind of capacity; null = no price known, or a run without an end. `note` says which price and of when. */
export interface CapacityCost {
  usd: number | null;
  perHour: number | null;
  note: string;
}

/** Dollars of the whole run by capacity kind. */
export interface RunCost {
  onDemand: number | null;
  perHour: number | null;
  basis: Price['basis'] | null;
  note: string;
  spot: CapacityCost;
  trainingPlan: CapacityCost;
}

/** Where prices are looked up. */
export interface PriceFacts {
  region: string;
  /** The environment's own rates, USD per instance-hour. */
  prices?: Readonly<Record<string, number>>;
}

/** Prices of one kind, and what a note calls them. */
interface PriceList {
  what: string;
  find: (instanceType: string) => Pick<Price, 'usdPerHour' | 'note'> | undefined;
}

/** Dollars of every host of the job for `hours`, spare ones too; spot and plans beside on-demand where somebody has seen their price. */
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
