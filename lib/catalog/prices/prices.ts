import { ESTIMATED_PRICES, OBSERVED_PRICES } from './price-tables';

/** A price in USD an hour and instance, and where it comes from. */
export interface Price {
  usdPerHour: number;
  /** Date of the price. */
  asOf: string;
  /** own = negotiated rate of the environment; observed = a price list row of this region; the rest are said to be estimates. */
  basis: 'own' | 'observed' | 'other-region' | 'estimate';
  /** What a reader must know about the figure. */
  note: string;
}

/**
 * On-demand USD per instance-hour for training, or undefined when no source has one (a launch then asks for an acknowledgement).
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
