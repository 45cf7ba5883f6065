/** Half-width of the jitter, as a share of the delay. */
const JITTER = 0.25;

/** A number in [0, 1) that depends only on the text (FNV-1a), so that the same decision always gets the same delay. */
export function deterministicUnit(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash ^= text.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  // One round of avalanche mixing: short texts that differ only in the last character must give unrelated numbers.
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  hash ^= hash >>> 12;
  return (hash >>> 0) / 2 ** 32;
}

/** A delay in seconds that doubles from attempt to attempt up to a limit. */
export interface Backoff {
  firstSeconds: number;
  mostSeconds: number;
}

/**
 * Delay before try number `tries` + 1: doubles from `firstSeconds` up to `mostSeconds`, plus or minus 25 % jitter.
 * @param tries how many tries have failed, counted from 1; 0 means no delay
 * @param seed distinguishes the delays of this run from those of other runs
 */
export function backoffSeconds({ firstSeconds, mostSeconds }: Backoff, tries: number, seed: string): number {
  if (tries <= 0 || firstSeconds === 0) return 0;
  const plain = Math.min(mostSeconds, firstSeconds * 2 ** Math.min(tries - 1, 30));
  return Math.round(plain * (1 - JITTER + 2 * JITTER * deterministicUnit(`${seed}/${tries}`)));
}
