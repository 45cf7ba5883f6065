import type { Price } from './prices';

/** Kinds of capacity with prices other than on-demand. */
export type PricedCapacity = 'spot' | 'training-plan';

interface CapacityPrice {
  usdPerHour: number;
  asOf: string;
  what: string;
}

/**
 * Observed USD per instance-hour: spot from billed divided by elapsed seconds of one night, training plans from live one-day offers for one
 * instance (for HyperPod clusters; offers for training jobs are priced separately). Neither is a list price: both change with demand;
 * SearchTrainingPlanOfferings and the Price List return current prices. Retrieved 2026-11-20.
 */
const SEEN: Readonly<Record<PricedCapacity, Readonly<Record<string, Readonly<Record<string, CapacityPrice>>>>>> = {
  spot: {
    'ml.p5.48xlarge': { 'us-west-2': { usdPerHour: 24.05, asOf: '2026-09-16', what: 'spot as billed one night' } },
  },
  'training-plan': {
    'ml.p4d.24xlarge': {
      'us-east-1': { usdPerHour: 13, asOf: '2026-10-04', what: 'plan offer' },
      'us-east-2': { usdPerHour: 13, asOf: '2026-10-04', what: 'plan offer' },
      'us-west-2': { usdPerHour: 13, asOf: '2026-10-04', what: 'plan offer' },
    },
    'ml.p5.48xlarge': { 'us-east-1': { usdPerHour: 45.77, asOf: '2026-10-04', what: 'plan offer' } },
    'ml.p5en.48xlarge': {
      'us-east-1': { usdPerHour: 60.53, asOf: '2026-10-04', what: 'plan offer' },
      'us-west-2': { usdPerHour: 60.53, asOf: '2026-10-04', what: 'plan offer' },
    },
  },
};

/** Observed price of spot or of a training plan; undefined when there is none. The note says if the price is from another region. */
export function findCapacityPrice(
  capacity: PricedCapacity,
  instanceType: string,
  region: string,
): (Omit<Price, 'basis'> & { basis: 'observed' | 'other-region' }) | undefined {
  const rows = SEEN[capacity][instanceType] ?? {};
  const here = rows[region];
  if (here) return priceOf(here, 'observed', `${here.what} in ${region}, ${here.asOf}`);
  const [otherRegion, other] = Object.entries(rows)[0] ?? [];
  return (
    other && priceOf(other, 'other-region', `${other.what} in ${otherRegion}, ${other.asOf}; ${region} may differ`)
  );
}

const priceOf = ({ usdPerHour, asOf }: CapacityPrice, basis: 'observed' | 'other-region', note: string) => ({
  usdPerHour,
  asOf,
  basis,
  note,
});
