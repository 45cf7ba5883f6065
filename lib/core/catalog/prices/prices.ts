// USD per instance-hour, on demand. Retrieved 2026-11-20.
// Observed: Price List rows and run journals (us-west-2 2026-09-01/16, us-east-1 2026-08). The Studio-JupyterLab rate equals the
// training rate for every pair that was checked. Estimates: EC2 on-demand us-east-1 of 2026-07-20 (karpenter-provider-aws
// zz_generated.pricing_aws.go) x 1.15 (P) or x 1.25 (G), x 1.40 (G .xlarge): a ratio, not a published price.

/** A price observed on a date; `what`: where it is not a list price. */
interface ObservedPrice {
  usdPerHour: number;
  asOf: string;
  what?: string;
}

type PricesByType = Readonly<Record<string, Readonly<Record<string, ObservedPrice>>>>;

/** The price in us-west-2, of Studio-JupyterLab. */
const west = (usdPerHour: number) => ({ 'us-west-2': { usdPerHour, asOf: '2026-09-01' } });

/** On-demand prices by type and region, in USD per instance-hour. */
const OBSERVED_PRICES: PricesByType = {
  'ml.g4dn.2xlarge': west(0.94),
  'ml.g4dn.xlarge': west(0.7364),
  'ml.g5.12xlarge': west(7.09),
  'ml.g5.24xlarge': west(10.18),
  'ml.g5.2xlarge': { 'us-east-1': { usdPerHour: 1.515, asOf: '2026-08-20' }, ...west(1.52) },
  'ml.g5.48xlarge': west(20.36),
  'ml.g5.4xlarge': west(2.03),
  'ml.g5.8xlarge': west(3.06),
  'ml.g5.xlarge': west(1.41),
  'ml.g6.12xlarge': west(5.752),
  'ml.g6.24xlarge': west(8.344),
  'ml.g6.2xlarge': west(1.222),
  'ml.g6.48xlarge': west(16.688),
  'ml.g6.4xlarge': west(1.654),
  'ml.g6.xlarge': west(1.127),
  'ml.g7e.12xlarge': west(10.3576),
  'ml.g7e.24xlarge': west(20.7152),
  'ml.g7e.2xlarge': west(4.2039),
  'ml.g7e.48xlarge': west(41.4304),
  'ml.g7e.4xlarge': west(4.9977),
  'ml.g7e.8xlarge': west(6.5853),
  'ml.m5.2xlarge': west(0.461),
  'ml.m5.large': { 'us-east-1': { usdPerHour: 0.115, asOf: '2026-08-11' }, ...west(0.115) },
  'ml.m5.xlarge': west(0.23),
  'ml.p4d.24xlarge': west(25.251286),
  'ml.p5.48xlarge': { 'us-west-2': { usdPerHour: 63.296, asOf: '2026-09-16' } },
  'ml.t3.medium': west(0.05),
};

/** Prices estimated from EC2 prices, in USD per instance-hour, of types without an observed one; plans mark them as estimates. */
const ESTIMATED_ON = '2026-07-20';
const ESTIMATED_PRICES: Readonly<Record<string, number>> = {
  'ml.p4de.24xlarge': 31.5641,
  'ml.p5.4xlarge': 7.912,
  'ml.p5en.48xlarge': 72.7904,
  'ml.p6-b200.48xlarge': 131.0227,
  'ml.p6-b300.48xlarge': 163.7784,
  'ml.g5.16xlarge': 5.12,
  'ml.g6.8xlarge': 2.518,
  'ml.g6.16xlarge': 4.246,
  'ml.g6e.xlarge': 2.6054,
  'ml.g6e.2xlarge': 2.8026,
  'ml.g6e.4xlarge': 3.7553,
  'ml.g6e.8xlarge': 5.6607,
  'ml.g6e.12xlarge': 13.1158,
  'ml.g6e.16xlarge': 9.4715,
  'ml.g6e.24xlarge': 18.832,
  'ml.g6e.48xlarge': 37.664,
  'ml.g7.2xlarge': 3.15,
  'ml.g7.4xlarge': 3.8026,
  'ml.g7.8xlarge': 5.1078,
  'ml.g7.12xlarge': 8.9104,
  'ml.g7.24xlarge': 17.8208,
  'ml.g7.48xlarge': 35.6416,
};

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
  const seen = nearest(OBSERVED_PRICES[instanceType], region);
  if (seen) return seen;
  const usdPerHour = ESTIMATED_PRICES[instanceType];
  if (usdPerHour === undefined) return undefined;
  const note = `estimate from the EC2 price of ${ESTIMATED_ON}, not a published rate`;
  return { usdPerHour, asOf: ESTIMATED_ON, basis: 'estimate', note };
}

/** The price of a region, or of another one if there is none. The note says if it is from another region. */
function nearest(rows: Readonly<Record<string, ObservedPrice>> = {}, region: string) {
  const here = rows[region];
  const [place, row] = here ? [region, here] : (Object.entries(rows)[0] ?? []);
  if (place === undefined || !row) return undefined;
  const { usdPerHour, asOf, what } = row;
  const note = `${what ? `${what} in` : 'list price of'} ${place}, ${asOf}`;
  if (here) return { usdPerHour, asOf, basis: 'observed' as const, note };
  return { usdPerHour, asOf, basis: 'other-region' as const, note: `${note}; ${region} may differ` };
}

/**
 * List prices for the standing cost of an environment in us-east-1 and us-west-2 (they are equal), USD. Other Regions differ by up to 50 %.
 * Retrieved on the date in `asOf`; each price cites its page.
 */
export const STANDING_PRICES = {
  asOf: '2026-11-22',
  regions: ['us-east-1', 'us-west-2'],
  /** An interface endpoint in one zone, per hour; data costs an additional 0.01 per GB. https://aws.amazon.com/privatelink/pricing/ */
  endpointHour: 0.01,
  /** A NAT gateway, per hour; data costs an additional 0.045 per GB. https://aws.amazon.com/vpc/pricing/ */
  natGatewayHour: 0.045,
  /** A public IPv4 address, per hour, whether in use or not. https://aws.amazon.com/vpc/pricing/ */
  publicAddressHour: 0.005,
  /** A customer managed key, per month, prorated hourly. https://aws.amazon.com/kms/pricing/ */
  keyMonth: 1,
  /** An alarm on one metric, per month. https://aws.amazon.com/cloudwatch/pricing/ */
  alarmMonth: 0.1,
  /** A dashboard, per month; three per account are free. https://aws.amazon.com/cloudwatch/pricing/ */
  dashboardMonth: 3,
  /** A custom metric, per month, prorated hourly. https://aws.amazon.com/cloudwatch/pricing/ */
  metricMonth: 0.3,
  /** S3 Standard, the first 50 TB, per GB-month. https://aws.amazon.com/s3/pricing/, 2026-11-26. */
  s3GbMonth: 0.023,
  /** An image in Amazon ECR, per GB-month. https://aws.amazon.com/ecr/pricing/, 2026-11-26. */
  ecrGbMonth: 0.1,
  /** FSx for Lustre, PERSISTENT_2 on SSD, per GB-month, by MB/s per TiB. https://aws.amazon.com/fsx/lustre/pricing/ */
  lustreGbMonth: { 125: 0.145, 250: 0.21, 500: 0.34, 1000: 0.6 } as Readonly<Record<number, number>>,
} as const;

/** Hours per month in the AWS Pricing Calculator. */
export const HOURS_A_MONTH = 730;

/** Number of zones in the most common Regions; it determines the cost of interface endpoints in `all` zones. */
export const ZONES_OF_REGION: Readonly<Record<string, number>> = { 'us-east-1': 6, 'us-west-2': 4, 'us-east-2': 3 };

/** Kinds of capacity with prices other than on-demand. */
export type PricedCapacity = 'spot' | 'training-plan';

/**
 * Observed USD per instance-hour: spot from billed divided by elapsed seconds of one night, training plans from live one-day offers for one
 * instance (for HyperPod clusters; offers for training jobs are priced separately). Neither is a list price: both change with demand;
 * SearchTrainingPlanOfferings and the Price List return current prices. Retrieved 2026-11-20.
 */
const SEEN: Readonly<Record<PricedCapacity, PricesByType>> = {
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
export const findCapacityPrice = (capacity: PricedCapacity, instanceType: string, region: string) =>
  nearest(SEEN[capacity][instanceType], region);
