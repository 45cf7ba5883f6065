import { HALF_OF_80 } from '../../spec/normal';
import { meanHoursBetweenFailures, RESTART_SECONDS } from '../run/failures';
import type { RunPlan } from '../run/plan-run';
import { type Draws, drawsFrom } from './draws';

/** What own runs on the same instance type and kind of capacity have seen. */
export interface CapacityHistory {
  runs: number;
  /** Hours from the request of a job to its first step of training, one an attempt. */
  waitsHours: readonly number[];
  /** Attempts that ended early, and interruptions by the service. */
  interruptions: number;
  /** Hours of training times instances. */
  instanceHours: number;
}

/** The history of an environment that has had no run. */
export const NO_HISTORY: CapacityHistory = { runs: 0, waitsHours: [], interruptions: 0, instanceHours: 0 };

/** The part of a plan that the course of a run follows from. */
export type Work = Pick<RunPlan, 'checkpoint'> & {
  /** Training hours without failures, and their 80 % interval. */
  hours: number;
  hours80: readonly [number, number];
  instances: number;
};

/** One way in which the run may go, hours from the moment that it may start. */
export interface Course {
  waitHours: number;
  /** From the first step to the last, with failures and restarts. */
  runHours: number;
  /** Of `runHours`, what is billed: waits for other capacity are not. */
  billedHours: number;
}

/** How the instances of a run are paid for. */
export type CapacityKind = 'on-demand' | 'spot' | 'reserved';

/**
 * Waits before own runs have shown any, lognormal: half below 20 minutes, nine of ten below 2 h 40 min. Reported waits for H100 capacity on
 * demand are 74 and 133 minutes, with one grant in the first eight hours (docs/facts/quotas-instances-prices.md); other types take minutes. Capacity that is reserved starts in ten minutes.
 */
const WAIT_PRIOR = { medianHours: 1 / 3, sigma: 1.6 };
const RESERVED_START_HOURS = 1 / 6;
/** The prior counts for as much as this many own waits. */
const WAIT_PRIOR_RUNS = 3;
/**
 * Share of spot instances that are interrupted in a month: the highest class of the Spot Instance Advisor begins at 20 %
 * (https://aws.amazon.com/ec2/spot/instance-advisor/), and large GPU types are in it.
 */
const SPOT_INTERRUPTIONS_PER_MONTH = 0.2;
/** Failures that the prior counts for: own runs soon say more. */
const PRIOR_FAILURES = 0.5;
const HOURS_PER_MONTH = 730;
const COURSES = 4000;
const SEED = 20261122;

/** Some thousand courses of a run, always the same ones. */
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
  const eachHours = checkpoint.intervalMinutes / 120 + RESTART_SECONDS / 3600;
  let waitedAgain = 0;
  // Who loses a spot instance waits for another one.
  if (kind === 'spot') for (let i = 0; i < failures; i++) waitedAgain += waitHours(kind, history, draws);
  const billedHours = trained + failures * eachHours;
  return { waitHours: waitHours(kind, history, draws), runHours: billedHours + waitedAgain, billedHours };
}

function waitHours(kind: CapacityKind, { waitsHours }: CapacityHistory, draws: Draws): number {
  if (kind === 'reserved') return RESERVED_START_HOURS;
  const own = waitsHours.length / (waitsHours.length + WAIT_PRIOR_RUNS);
  if (draws.uniform() < own) return waitsHours[Math.floor(draws.uniform() * waitsHours.length)] ?? 0;
  return WAIT_PRIOR.medianHours * Math.exp(WAIT_PRIOR.sigma * draws.normal());
}

/** A Gamma prior of one instance, updated by what own runs have seen, drawn, for all instances of the job. */
function failuresPerHour({ instances }: Work, kind: CapacityKind, history: CapacityHistory, draws: Draws): number {
  const hardware = 1 / meanHoursBetweenFailures(1);
  const prior = hardware + (kind === 'spot' ? SPOT_INTERRUPTIONS_PER_MONTH / HOURS_PER_MONTH : 0);
  const shape = PRIOR_FAILURES + history.interruptions;
  const mean = shape / (PRIOR_FAILURES / prior + history.instanceHours);
  return instances * draws.gamma(shape, mean);
}
