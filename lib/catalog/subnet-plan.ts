/** Addresses of a network that a stack makes. */
export const VPC_CIDR = '10.64.0.0/16';
/** The VPC is cut into eight blocks of /19, 8,187 usable addresses each: five per EFA instance leave room for more than a thousand. */
const BLOCKS = 8;
/** Zones that a network has room for: one block each, and one for the edges. */
export const MOST_PLANNED_ZONES = BLOCKS - 1;

/** Where the subnets of one zone lie. */
export interface PlannedSubnets {
  /** Zone id (usw2-az2) or zone name (us-west-2b). */
  zone: string;
  /** Number of the zone's subnets, from 1: constructs are named after it, so that a zone that stays keeps its resources. */
  number: number;
  /** Subnet of jobs, /19. */
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
 */
export function subnetPlan(zones: readonly string[], order: readonly string[] = []): PlannedSubnets[] {
  return zones
    .map((zone, index) => planned(zone, zonePosition(zone) ?? index, order))
    .sort((a, b) => a.number - b.number);
}

function planned(zone: string, position: number, order: readonly string[]): PlannedSubnets {
  const edges = order.length === 0 ? BLOCKS - 1 : order.length;
  const slot = order.length === 0 ? position : slotBeside(order, zone, position);
  const edge = slot > edges ? slot - 1 : slot;
  return { zone, number: slot + 1, cidr: `10.64.${slot * 32}.0/19`, edgeCidr: `10.64.${edges * 32}.${edge * 16}/28` };
}

/** Zones of the order by their place in it; all others, by their position, in the blocks after the edges that came next in 0.1.0. */
function slotBeside(order: readonly string[], zone: string, position: number): number {
  const place = order.indexOf(zone);
  if (place >= 0) return place;
  const before = order.filter((other) => (zonePosition(other) ?? BLOCKS) < position).length;
  return order.length + 1 + position - before;
}
