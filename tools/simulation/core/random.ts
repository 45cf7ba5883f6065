/**
 * The n-th number in [0, 1) of an independent stream: draws from one stream do not change the others. Mixed with the finalizer of
 * MurmurHash3 (Austin Appleby, public domain).
 */
export function unitAt(seed: number, stream: number, n: number): number {
  let h = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(stream + 1, 0xc2b2ae35) ^ Math.imul(n + 1, 0x27d4eb2f);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) >>> 0) / 2 ** 32;
}

/**
 * Pseudo-random numbers in [0, 1) that depend only on the seed: Chris Doty-Humphrey's small fast counting generator, sfc32 (public domain).
 */
export class Random {
  private a = 0x9e3779b9;
  private b = 0x243f6a88;
  private c = 0xb7e15162;
  private counter = 1;

  constructor(seed: number) {
    this.a ^= seed >>> 0;
    this.b ^= Math.floor(seed / 2 ** 32) >>> 0;
    for (let i = 0; i < 15; i++) this.next();
  }

  next(): number {
    const sum = (((this.a + this.b) | 0) + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = ((this.c << 21) | (this.c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  }

  /** Whole number from `least` to `most`, inclusive. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  pick<T>(list: readonly T[]): T {
    const picked = list[Math.floor(this.next() * list.length)];
    if (picked === undefined) throw new Error('nothing to pick from');
    return picked;
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  hex(digits: number): string {
    return Array.from({ length: digits }, () => Math.floor(this.next() * 16).toString(16)).join('');
  }
}
