import { findPrice } from '../catalog/prices';
import type { Level } from './assumption';
import { MOST_INSTANCE_SECONDS } from './train-jobs';

/** Seconds that the all-reduce of level `efa` may take on its two hosts. */
export const EFA_SECONDS = 1800;

/**
 * Interface endpoints of the small environment for the hour that level `deploy` takes, in every zone: USD an hour of one endpoint in one
 * zone in the dearest commercial Region. Source: https://aws.amazon.com/privatelink/pricing/, 2026-11-22.
 */
const ENDPOINT_USD_PER_HOUR = 0.014;
const ENDPOINTS = 7;
const ZONES = 6;
/** A key costs 1 USD a month, by the hour; requests of buckets, tables and functions are cents. */
const OTHER_USD = 0.1;

const HOUR_SECONDS = 3600;

export interface LevelCost {
  readonly level: Level;
  /** At most; undefined when the price of the type is not known. */
  readonly usd: number | undefined;
}

/** The most that each level can cost, in USD. */
export function mostCost(levels: readonly Level[], region: string, types: { cpu: string; efa?: string }): LevelCost[] {
  const perSecond = (type: string | undefined) => {
    const price = type && findPrice(type, region)?.usdPerHour;
    return price ? price / HOUR_SECONDS : undefined;
  };
  const times = (price: number | undefined, seconds: number) => (price === undefined ? undefined : price * seconds);
  const most: Record<Level, () => number | undefined> = {
    read: () => 0,
    deploy: () => ENDPOINT_USD_PER_HOUR * ENDPOINTS * ZONES + OTHER_USD,
    train: () => times(perSecond(types.cpu), MOST_INSTANCE_SECONDS),
    efa: () => times(perSecond(types.efa), 2 * EFA_SECONDS),
  };
  return levels.map((level) => ({ level, usd: most[level]() }));
}
