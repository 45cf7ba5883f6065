/**
 * List prices of the standing cost of an environment, USD, of us-east-1 and us-west-2 (they are the same there). Other Regions differ by
 * up to half. Retrieved on the date of `asOf`; each price has its page beside it.
 */
export const STANDING_PRICES = {
  asOf: '2026-11-22',
  regions: ['us-east-1', 'us-west-2'],
  /** An interface endpoint in one zone, an hour; data costs 0.01 a GB on top. https://aws.amazon.com/privatelink/pricing/ */
  endpointHour: 0.01,
  /** A NAT gateway, an hour; data costs 0.045 a GB on top. https://aws.amazon.com/vpc/pricing/ */
  natGatewayHour: 0.045,
  /** A public IPv4 address, an hour, in use or not. https://aws.amazon.com/vpc/pricing/ */
  publicAddressHour: 0.005,
  /** A customer managed key, a month, by the hour. https://aws.amazon.com/kms/pricing/ */
  keyMonth: 1,
  /** An alarm on one metric, a month. https://aws.amazon.com/cloudwatch/pricing/ */
  alarmMonth: 0.1,
  /** A dashboard, a month; an account has three for nothing. https://aws.amazon.com/cloudwatch/pricing/ */
  dashboardMonth: 3,
  /** A metric of one's own, a month, by the hour. https://aws.amazon.com/cloudwatch/pricing/ */
  metricMonth: 0.3,
  /** FSx for Lustre, PERSISTENT_2 on SSD, a GB and month, by MB/s per TiB. https://aws.amazon.com/fsx/lustre/pricing/ */
  lustreGbMonth: { 125: 0.145, 250: 0.21, 500: 0.34, 1000: 0.6 } as Readonly<Record<number, number>>,
} as const;

/** Hours of a month, as AWS counts them in its calculator. */
export const HOURS_A_MONTH = 730;

/** Zones of Regions that are used most; their number decides what an interface endpoint in `all` zones costs. */
export const ZONES_OF_REGION: Readonly<Record<string, number>> = { 'us-east-1': 6, 'us-west-2': 4, 'us-east-2': 3 };
