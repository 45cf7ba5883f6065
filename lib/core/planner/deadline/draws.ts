/** Random numbers in a fixed order, so that the same plan always has the same result. */
export interface Draws {
  /** Uniform in [0, 1). */
  uniform(): number;
  /** Normal with mean 0 and standard deviation 1. */
  normal(): number;
  /** Gamma with this shape and mean. */
  gamma(shape: number, mean: number): number;
  /** Poisson count with this mean. */
  poisson(mean: number): number;
}

/** Mulberry32 (Tommy Ettinger, public domain): 32 bits of state suffice for some thousand draws. */
export function drawsFrom(seed: number): Draws {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  // Box-Muller transform.
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  const gamma = (shape: number, mean: number) => (mean / shape) * standardGamma(shape, uniform, normal);
  return { uniform, normal, gamma, poisson: (mean) => poissonOf(mean, uniform, normal) };
}

/** Marsaglia and Tsang 2000; for a shape below 1 with their power of a uniform number. */
function standardGamma(shape: number, uniform: () => number, normal: () => number): number {
  if (shape < 1) return standardGamma(shape + 1, uniform, normal) * (1 - uniform()) ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normal();
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(1 - uniform()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
  }
}

/** Above this mean the normal approximation is close enough. */
const LARGE_MEAN = 50;

function poissonOf(mean: number, uniform: () => number, normal: () => number): number {
  if (mean > LARGE_MEAN) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal()));
  const limit = Math.exp(-mean);
  let count = 0;
  for (let product = uniform(); product > limit; product *= uniform()) count += 1;
  return count;
}

/** Quantile of a sorted list, which must not be empty. */
export function quantile(sorted: readonly number[], share: number): number {
  const at = (sorted.length - 1) * share;
  const [low, high] = [sorted[Math.floor(at)] ?? 0, sorted[Math.ceil(at)] ?? 0];
  return low + (high - low) * (at - Math.floor(at));
}
