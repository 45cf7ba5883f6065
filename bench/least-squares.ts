/** A named constant: its value without any data, how far data may pull it (standard deviation of its logarithm), and its bounds. */
export interface Prior {
  value: number;
  spread: number;
  low: number;
  high: number;
}

/** Weighted residuals of a model at `values`. */
export type Residuals = (values: readonly number[]) => number[];

/** Beyond this many log units a residual counts linearly, so that one odd row does not bend a constant. */
const HUBER = 0.12;

const huberWeight = (residual: number) => (Math.abs(residual) <= HUBER ? 1 : Math.sqrt(HUBER / Math.abs(residual)));

/** Solves the symmetric system a x = b in place by Gaussian elimination with partial pivoting. */
function solve(a: number[][], b: number[]): number[] {
  const n = b.length;
  for (let i = 0; i < n; i++) {
    let pivot = i;
    for (let r = i + 1; r < n; r++) if (Math.abs(a[r]?.[i] ?? 0) > Math.abs(a[pivot]?.[i] ?? 0)) pivot = r;
    [a[i], a[pivot]] = [a[pivot] ?? [], a[i] ?? []];
    [b[i], b[pivot]] = [b[pivot] ?? 0, b[i] ?? 0];
    for (let r = i + 1; r < n; r++) eliminate(a, b, i, r);
  }
  const x = new Array<number>(n).fill(0);
  for (let i = n - 1; i >= 0; i--) {
    let sum = b[i] ?? 0;
    for (let c = i + 1; c < n; c++) sum -= (a[i]?.[c] ?? 0) * (x[c] ?? 0);
    x[i] = sum / (a[i]?.[i] ?? 1);
  }
  return x;
}

function eliminate(a: number[][], b: number[], from: number, row: number): void {
  const source = a[from] ?? [];
  const target = a[row] ?? [];
  const factor = (target[from] ?? 0) / (source[from] ?? 1);
  for (let c = from; c < b.length; c++) target[c] = (target[c] ?? 0) - factor * (source[c] ?? 0);
  b[row] = (b[row] ?? 0) - factor * (b[from] ?? 0);
}

/**
 * Levenberg-Marquardt in the logarithm of each constant, residuals robust by Huber's weights, constants held to their priors.
 * @param priorUnit how much one standard deviation from a prior counts, in units of a log error
 * @param residuals log errors and the weight of each, at given constants
 */
export function fitConstants(
  priors: readonly Prior[],
  residuals: (values: readonly number[]) => { error: number; weight: number }[],
  iterations = 40,
  priorUnit = 0.03,
): number[] {
  let logs = priors.map((p) => Math.log(p.value));
  const valuesOf = (at: readonly number[]) => at.map((x) => Math.exp(x));
  const pull = (at: readonly number[]) =>
    at.map((x, i) => (x - Math.log(priors[i]?.value ?? 1)) / (priors[i]?.spread ?? 1));
  const evaluate = (at: readonly number[]) =>
    residuals(valuesOf(at))
      .map((r) => r.error * r.weight * huberWeight(r.error))
      .concat(pull(at).map((x) => x * priorUnit));
  const cost = (r: readonly number[]) => r.reduce((sum, x) => sum + x * x, 0);
  let current = evaluate(logs);
  let damping = 1e-3;
  for (let step = 0; step < iterations; step++) {
    const jacobian = logs.map((_, i) => derivative(evaluate, logs, current, i));
    let accepted = false;
    for (let attempt = 0; attempt < 6 && !accepted; attempt++) {
      const move = newtonStep(jacobian, current, damping);
      const next = logs.map((x, i) => clampLog(x + Math.max(-0.5, Math.min(0.5, move[i] ?? 0)), priors[i]));
      const result = evaluate(next);
      if (cost(result) < cost(current)) {
        accepted = true;
        if (cost(current) - cost(result) < 1e-6 * cost(current)) step = iterations;
        logs = next;
        current = result;
        damping = Math.max(1e-6, damping / 4);
      } else damping *= 6;
    }
    if (!accepted) break;
  }
  return valuesOf(logs);
}

const clampLog = (x: number, prior: Prior | undefined) =>
  prior ? Math.min(Math.log(prior.high), Math.max(Math.log(prior.low), x)) : x;

function derivative(evaluate: Residuals, at: readonly number[], base: readonly number[], index: number): number[] {
  const h = 1e-3;
  const moved = at.map((x, i) => (i === index ? x + h : x));
  return evaluate(moved).map((r, i) => (r - (base[i] ?? 0)) / h);
}

function newtonStep(jacobian: readonly number[][], residual: readonly number[], damping: number): number[] {
  const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, x, i) => sum + x * (b[i] ?? 0), 0);
  const a = jacobian.map((row, i) => jacobian.map((other, j) => dot(row, other) * (i === j ? 1 + damping : 1)));
  const b = jacobian.map((row) => -dot(row, residual));
  return solve(a, b);
}
