import { REGIONS } from './regions';

/** Partitions whose zone ids follow a known naming scheme. */
const PARTITIONS = ['aws', 'aws-cn', 'aws-us-gov'];

/**
 * Prefix of the zone ids of a Region: `usw2` in us-west-2, `apne1` in ap-northeast-1, `usgw1` in us-gov-west-1. Undefined when it is not
 * known. Source: https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-availability-zones.html, 2026-11-21.
 */
export function zoneIdPrefix(region: string): string | undefined {
  if (!PARTITIONS.includes(REGIONS[region]?.partition ?? '')) return undefined;
  const [country = '', ...words] = region.split('-');
  return (
    country + words.map((word) => (/^(north|south)(east|west)$/.test(word) ? `${word[0]}${word[5]}` : word[0])).join('')
  );
}
