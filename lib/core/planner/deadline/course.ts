import { HALF_OF_80 } from '../../config/formats/numbers';
import { meanHoursBetweenFailures, NEW_ATTEMPT_SECONDS } from '../run/failures';
import type { RunPlan } from '../run/plan-run';

/**
 * Random numbers in a fixed order, so that the same plan always has the same result. `gamma` has this shape and mean. Mulberry32 (Tommy
 * Ettinger, public domain): 32 bits of state suffice for some thousand draws.
 */
export function drawsFrom(seed: number) {
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
  return { uniform, normal, gamma, poisson: (mean: number) => poissonOf(mean, uniform, normal) };
}

type Draws = ReturnType<typeof drawsFrom>;

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

/** Observations of the environment's own runs on the same instance type and kind of capacity. */
export interface CapacityHistory {
  runs: number;
  /** Hours from the creation of a job to its first training step, one value per attempt. */
  waitsHours: readonly number[];
  /** Number of attempts that ended early, and of interruptions by the service. */
  interruptions: number;
  /** Hours of training multiplied by the number of instances. */
  instanceHours: number;
}

/** The history of an environment without runs. */
export const NO_HISTORY: CapacityHistory = { runs: 0, waitsHours: [], interruptions: 0, instanceHours: 0 };

/** The part of a plan from which a run's course is simulated. */
export type Work = Pick<RunPlan, 'checkpoint' | 'failureSeconds'> & {
  /** Training hours without failures, and their 80 % interval. */
  hours: number;
  hours80: readonly [number, number];
  instances: number;
};

/** One simulated course of a run, in hours from its earliest start. */
export interface Course {
  waitHours: number;
  /** From the first to the last step, including failures and restarts. */
  runHours: number;
  /** The billed part of `runHours`: waits for replacement capacity are not billed. */
  billedHours: number;
}

/** How the instances of a run are paid for. */
export type CapacityKind = 'on-demand' | 'spot' | 'reserved';

/**
 * Prior of the wait for capacity before the environment's own runs have been observed, lognormal: 50 % below 20 minutes, 90 % below 2 h 40
 * min. Reported waits for H100 on-demand capacity are 74 and 133 minutes, with one grant in the first eight hours
 * (docs/facts/quotas-instances-prices.md); other types take minutes. Reserved capacity starts within ten minutes.
 */
const WAIT_PRIOR = { medianHours: 1 / 3, sigma: 1.6 };
const RESERVED_START_HOURS = 1 / 6;
/** The weight of the prior, as a number of observed waits. */
const WAIT_PRIOR_RUNS = 3;
/**
 * Share of spot instances that are interrupted per month: the highest class of the Spot Instance Advisor starts at 20 %
 * (https://aws.amazon.com/ec2/spot/instance-advisor/), and it contains large GPU types.
 */
const SPOT_INTERRUPTIONS_PER_MONTH = 0.2;
/** The weight of the prior, as a number of failures: the environment's own runs soon outweigh it. */
const PRIOR_FAILURES = 0.5;
const HOURS_PER_MONTH = 730;
const COURSES = 4000;
const SEED = 20261122;

/** Simulates several thousand courses of a run, deterministically. */
export function coursesOf(work: Work, kind: CapacityKind, history: CapacityHistory): Course[] {
  const draws = drawsFrom(SEED);
  return Array.from({ length: COURSES }, () => course(work, kind, history, draws));
}

function course(work: Work, kind: CapacityKind, history: CapacityHistory, draws: Draws): Course {
  const { checkpoint } = work;
  const sigma = Math.log(work.hours80[1] / work.hours80[0]) / (2 * HALF_OF_80);
  const saves = 1 + checkpoint.blockedSeconds / (checkpoint.intervalMinutes * 60);
  const trained = work.hours * Math.exp(sigma * draws.normal()) * saves;
  const failures = draws.poisson(failuresPerHour(work, kind, history, draws) * trained);
  // An interruption of a spot instance ends the job.
  const eachSeconds = kind === 'spot' ? 30 * checkpoint.intervalMinutes + NEW_ATTEMPT_SECONDS : work.failureSeconds;
  let waitedAgain = 0;
  // A run that loses a spot instance waits for a replacement.
  if (kind === 'spot') for (let i = 0; i < failures; i++) waitedAgain += waitHours(kind, history, draws);
  const billedHours = trained + (failures * eachSeconds) / 3600;
  return { waitHours: waitHours(kind, history, draws), runHours: billedHours + waitedAgain, billedHours };
}

function waitHours(kind: CapacityKind, { waitsHours }: CapacityHistory, draws: Draws): number {
  if (kind === 'reserved') return RESERVED_START_HOURS;
  const own = waitsHours.length / (waitsHours.length + WAIT_PRIOR_RUNS);
  if (draws.uniform() < own) return waitsHours[Math.floor(draws.uniform() * waitsHours.length)] ?? 0;
  return WAIT_PRIOR.medianHours * Math.exp(WAIT_PRIOR.sigma * draws.normal());
}

/** Failures per hour of all instances of the job, drawn from a Gamma prior per instance that was updated with the observed runs. */
function failuresPerHour({ instances }: Work, kind: CapacityKind, history: CapacityHistory, draws: Draws): number {
  const hardware = 1 / meanHoursBetweenFailures(1);
  const prior = hardware + (kind === 'spot' ? SPOT_INTERRUPTIONS_PER_MONTH / HOURS_PER_MONTH : 0);
  const shape = PRIOR_FAILURES + history.interruptions;
  const mean = shape / (PRIOR_FAILURES / prior + history.instanceHours);
  return instances * draws.gamma(shape, mean);
}
