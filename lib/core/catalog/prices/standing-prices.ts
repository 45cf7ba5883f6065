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
