import { REGIONS } from './regions';

// Arithmetic on IPv4 CIDR blocks. It avoids JavaScript's bit operators, because they are signed.

/**
 * Parses a CIDR block: `first` is the address as written, `base` the first one of the block, `size` the number of its addresses.
 * @param cidr such as 10.64.0.0/16; the schema has validated the format
 */
export function blockOf(cidr: string) {
  const [address = '', length = '32'] = cidr.split('/');
  const first = address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);
  const size = 2 ** (32 - Number(length));
  return { first, base: Math.floor(first / size) * size, size, prefixLength: Number(length) };
}

/** The address in dotted decimal notation. */
export const addressText = (address: number): string =>
  [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');

/** Whether two blocks overlap. */
export function overlaps(one: string, other: string): boolean {
  const [a, b] = [blockOf(one), blockOf(other)];
  return a.base < b.base + b.size && b.base < a.base + a.size;
}

/** Default CIDR block of a VPC that a stack creates. */
export const DEFAULT_VPC_CIDR = '10.64.0.0/16';
/**
 * The VPC is divided into eight blocks. For a /16, each is a /19 with 8,187 usable addresses, enough for more than a thousand EFA instances
 * with five addresses each.
 */
const BLOCKS = 8;
/** Supported VPC sizes: EC2 allows /16 to /28, and the block for edge subnets must contain seven /28. */
export const VPC_PREFIX_LENGTHS: readonly [largest: number, smallest: number] = [16, 21];
const EDGE_ADDRESSES = 16;
/** Maximum number of zones: one block each, and one block for the edge subnets. */
export const MAX_PLANNED_ZONES = BLOCKS - 1;

/** Position of a zone in its Region, from 0: the number in a zone id, or the letter in a zone name. Undefined when it has neither. */
export function zonePosition(zone: string): number | undefined {
  const number = /-az(\d+)$/.exec(zone)?.[1];
  if (number !== undefined) return Number(number) - 1;
  const letter = /\d([a-z])$/.exec(zone)?.[1];
  return letter === undefined ? undefined : letter.charCodeAt(0) - 'a'.charCodeAt(0);
}

/**
 * Address ranges by zone. They depend only on the zone, not on other zones or their order: adding or removing zones does not change the
 * addresses of the others, and new zones do not overlap existing ones.
 * @param zones ids or names, or tokens of names (for which the order is used)
 * @param cidr CIDR block of the VPC, /16 to /21
 */
export function subnetPlan(zones: readonly string[], cidr = DEFAULT_VPC_CIDR) {
  const { first, size, prefixLength } = blockOf(cidr);
  const at = (block: number, offset = 0) => addressText(first + (block * size) / BLOCKS + offset);
  return zones
    .map((zone, index) => {
      const position = zonePosition(zone) ?? index;
      return {
        /** Zone id (usw2-az2) or zone name (us-west-2b). */
        zone,
        /** From 1. Construct ids contain it, so a zone that remains keeps its resources. */
        number: position + 1,
        /** Subnet for jobs, one eighth of the VPC; the public edge subnet of the zone is a /28. */
        cidr: `${at(position)}/${prefixLength + Math.log2(BLOCKS)}`,
        edgeCidr: `${at(BLOCKS - 1, position * EDGE_ADDRESSES)}/28`,
      };
    })
    .sort((a, b) => a.number - b.number);
}

/** Address ranges of the subnets of one zone. */
export type PlannedSubnets = ReturnType<typeof subnetPlan>[number];

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
