const BITS = 32;

const numberOf = (address: string): number | undefined => {
  const bytes = address.split('.').map(Number);
  if (bytes.length !== 4 || bytes.some((byte) => !Number.isInteger(byte) || byte < 0 || byte > 255)) return undefined;
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0);
};

/** Whether an IPv4 address is in a block such as `10.64.0.0/19`; false for other texts. */
export function cidrContains(block: string, address: string): boolean {
  const [base = '', length] = block.split('/');
  const network = numberOf(base);
  const host = numberOf(address);
  if (network === undefined || host === undefined || length === undefined) return false;
  const size = 2 ** (BITS - Number(length));
  return Math.floor(network / size) === Math.floor(host / size);
}
