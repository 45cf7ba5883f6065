import { addressText, blockOf } from './ipv4';

/** Addresses of a network that a stack makes, unless its file says otherwise. */
export const DEFAULT_VPC_CIDR = '10.64.0.0/16';
/** The VPC is cut into eight blocks; of a /16 each is a /19 with 8,187 usable addresses: five per EFA instance leave room for more than a thousand. */
const BLOCKS = 8;
/** Sizes of a VPC for such a plan: EC2 takes /16 to /28, and the block of the edges needs room for seven /28. */
export const VPC_PREFIX_LENGTHS: readonly [largest: number, smallest: number] = [16, 21];
const EDGE_ADDRESSES = 16;
/** Zones that a network has room for: one block each, and one for the edges. */
export const MOST_PLANNED_ZONES = BLOCKS - 1;

/** Where the subnets of one zone lie. */
export interface PlannedSubnets {
  /** Zone id (usw2-az2) or zone name (us-west-2b). */
  zone: string;
  /** Number of the zone's subnets, from 1: constructs are named after it, so that a zone that stays keeps its resources. */
  number: number;
  /** Subnet of jobs, an eighth of the VPC. */
  cidr: string;
  /** Public subnet in front of the zone, /28. */
  edgeCidr: string;
}

/** Position of a zone among those of its Region, from 0: the number of an id, the letter of a name. Undefined where it has none. */
export function zonePosition(zone: string): number | undefined {
  const number = /-az(\d+)$/.exec(zone)?.[1];
  if (number !== undefined) return Number(number) - 1;
  const letter = /\d([a-z])$/.exec(zone)?.[1];
  return letter === undefined ? undefined : letter.charCodeAt(0) - 'a'.charCodeAt(0);
}

/**
 * Addresses by zone. What a zone gets depends on the zone alone, and neither on the other zones nor on their order: a zone that stays
 * keeps its addresses when others come and go, and one that comes overlaps none that stays.
 * @param zones ids or names, or tokens of names (then their order decides)
 * @param order zones in the order in which version 0.1.0 numbered them; the first ones keep its addresses
 * @param cidr addresses of the VPC, /16 to /21
 */
export function subnetPlan(
  zones: readonly string[],
  order: readonly string[] = [],
  cidr = DEFAULT_VPC_CIDR,
): PlannedSubnets[] {
  return zones
    .map((zone, index) => planned(zone, zonePosition(zone) ?? index, order, cidr))
    .sort((a, b) => a.number - b.number);
}

function planned(zone: string, position: number, order: readonly string[], cidr: string): PlannedSubnets {
  const edges = order.length === 0 ? BLOCKS - 1 : order.length;
  const slot = order.length === 0 ? position : slotBeside(order, zone, position);
  const edge = slot > edges ? slot - 1 : slot;
  const { first, size, prefixLength } = blockOf(cidr);
  const at = (block: number, offset = 0) => addressText(first + (block * size) / BLOCKS + offset);
  return {
    zone,
    number: slot + 1,
    cidr: `${at(slot)}/${prefixLength + Math.log2(BLOCKS)}`,
    edgeCidr: `${at(edges, edge * EDGE_ADDRESSES)}/28`,
  };
}

/** Zones of the order by their place in it; all others, by their position, in the blocks after the edges that came next in 0.1.0. */
function slotBeside(order: readonly string[], zone: string, position: number): number {
  const place = order.indexOf(zone);
  if (place >= 0) return place;
  const before = order.filter((other) => (zonePosition(other) ?? BLOCKS) < position).length;
  return order.length + 1 + position - before;
}
