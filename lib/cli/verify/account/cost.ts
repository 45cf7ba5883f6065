import { findPrice } from '../../../core/catalog/prices/prices';
import { HOURS_A_MONTH } from '../../../core/catalog/prices/standing-prices';
import type { Level } from './assumption';
import { MAX_INSTANCE_SECONDS } from './train/train-jobs';

/** Maximum duration of the all-reduce job of level `efa` on its two hosts, seconds. */
export const EFA_SECONDS = 1800;

/** Cost of S3, DynamoDB and Lambda requests at level `deploy`, USD. */
const REQUESTS_USD = 0.1;
/** Hours that the small environment exists, including failed and repeated deployments. */
const DEPLOY_HOURS = 2;

const HOUR_SECONDS = 3600;

/** Maximum cost of a level of `slipway verify`, in USD. */
export interface LevelCost {
  readonly level: Level;
  /** Maximum cost; undefined when the price of the instance type is not known. */
  readonly usd: number | undefined;
}

/**
 * The maximum cost of each level, in USD.
 * @param standingUsdPerMonth standing cost of the environment of level `deploy`
 */
export function mostCost(
  levels: readonly Level[],
  region: string,
  types: { cpu: string; efa?: string },
  standingUsdPerMonth: number,
): LevelCost[] {
  const perSecond = (type: string | undefined) => {
    const price = type && findPrice(type, region)?.usdPerHour;
    return price ? price / HOUR_SECONDS : undefined;
  };
  const times = (price: number | undefined, seconds: number) => (price === undefined ? undefined : price * seconds);
  const most: Record<Level, () => number | undefined> = {
    read: () => 0,
    deploy: () => (standingUsdPerMonth / HOURS_A_MONTH) * DEPLOY_HOURS + REQUESTS_USD,
    train: () => times(perSecond(types.cpu), MAX_INSTANCE_SECONDS),
    efa: () => times(perSecond(types.efa), 2 * EFA_SECONDS),
  };
  return levels.map((level) => ({ level, usd: most[level]() }));
}
