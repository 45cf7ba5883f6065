// Arithmetic on IPv4 CIDR blocks. It avoids JavaScript's bit operators, because they are signed.

/** A CIDR block as written: `first` may be any address in the block, `base` is its first address. */
export interface Ipv4Block {
  first: number;
  base: number;
  /** Number of addresses in the block. */
  size: number;
  prefixLength: number;
}

/** Parses a CIDR block. @param cidr such as 10.64.0.0/16; the schema has validated the format */
export function blockOf(cidr: string): Ipv4Block {
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
