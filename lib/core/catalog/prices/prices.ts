import { ESTIMATED_PRICES, OBSERVED_PRICES } from './price-tables';

/** A price in USD per instance-hour, and its source. */
export interface Price {
  usdPerHour: number;
  /** Date of the price. */
  asOf: string;
  /** own = negotiated rate of the environment; observed = a Price List row of this region; the others are marked as estimates. */
  basis: 'own' | 'observed' | 'other-region' | 'estimate';
  /** Note for users about the price. */
  note: string;
}

/**
 * On-demand USD per instance-hour for training; undefined when no source has a price, in which case a launch requires an acknowledgement.
 * @param own negotiated rates of the environment, by instance type
 */
export function findPrice(
  instanceType: string,
  region: string,
  own: Readonly<Record<string, number>> = {},
): Price | undefined {
  const rate = own[instanceType];
  if (rate !== undefined) return { usdPerHour: rate, asOf: '', basis: 'own', note: "the environment's own rate" };
  const rows = OBSERVED_PRICES[instanceType] ?? {};
  const here = rows[region];
  if (here) return { ...pick(here), basis: 'observed', note: `list price of ${region}, ${here.asOf}` };
  const [otherRegion, other] = Object.entries(rows)[0] ?? [];
  if (other) {
    return {
      ...pick(other),
      basis: 'other-region',
      note: `list price of ${otherRegion}, ${other.asOf}; ${region} may differ`,
    };
  }
  const estimate = ESTIMATED_PRICES[instanceType];
  if (!estimate) return undefined;
  return {
    ...pick(estimate),
    basis: 'estimate',
    note: `estimate from the EC2 price of ${estimate.asOf}, not a published rate`,
  };
}

const pick = (row: { usdPerHour: number; asOf: string }) => ({ usdPerHour: row.usdPerHour, asOf: row.asOf });
