import { HALF_OF_80 } from '../../spec/normal';
import type { LayoutInput } from '../layout';

/** One run of one's own: what the planner says of it, and what it did. */
export interface Measurement {
  runId: string;
  /** `calibrationKey` of its layout. */
  key: string;
  /** Tokens a second and GPU: the planner's without calibration, its 80 % interval, and the median of the run's steps. */
  planned: number;
  interval80: readonly [low: number, high: number];
  measured: number;
  /** Absent where the run did not print its memory, or where it was short of it. */
  memory?: MemoryMeasurement;
}

/** GiB of the fullest GPU. */
export interface MemoryMeasurement {
  /** Weights, gradients and optimizer, and all else that the planner without calibration expects. */
  state: number;
  rest: number;
  /** The most that the allocator had reserved. */
  measured: number;
}

/** How fast runs of one key are against the uncalibrated plan. */
export interface Efficiency {
  /** Factor on the planned tokens a second. */
  speed: number;
  /** Standard deviation of ln(tokens a second) around the calibrated plan. */
  deviation: number;
  runs: readonly string[];
  /** What runs held beside weights, gradients and optimizer, against the plan; absent when none of them says so. */
  memory?: MemoryFactor;
}

/** How measured memory compares with the plan's, and over how many runs. */
export interface MemoryFactor {
  /** Factor on the planned GiB of activations, logits, gathered parameters, buffers and fragmentation. */
  factor: number;
  /** Runs that it was learned from. */
  runs: number;
}

/** `environments/<name>.calibration.json`. */
export interface Calibration {
  schema: 1;
  environment: string;
  measurements: readonly Measurement[];
  efficiencies: Readonly<Record<string, Efficiency>>;
}

/** Mean absolute error of the planned speed over the runs, as a share: as the planner is, and calibrated by the other runs alone. */
export interface CalibrationError {
  before: number;
  /** null with fewer than two runs of a key: a run must not judge what was fitted to it. */
  after: number | null;
  /** Runs that `after` is about. */
  judged: number;
  /** The same of the most memory; absent when no run says so. */
  memory?: Omit<CalibrationError, 'memory'>;
}

/** What two runs of one layout on other hosts of the same type differ by, standard deviation of ln(tokens a second); see docs/planner.md. */
const RUN_TO_RUN = 0.05;

/**
 * The planner's own error of what is not weights, gradients and optimizer, and what two runs of one layout differ by, standard deviations of
 * ln(GiB); see docs/planner.md.
 */
const MEMORY_PRIOR = 0.2;
const MEMORY_RUN_TO_RUN = 0.03;
/** A measurement below what weights, gradients and optimizer take cannot be of this layout; it moves a plan no further than this. */
const LEAST_REST = 0.1;

/** What calibration is kept for: one accelerator, one library, one precision. */
export const calibrationKey = (layout: Pick<LayoutInput, 'accelerator' | 'precision'>, library: string): string =>
  `${layout.accelerator.model}/${library}/${layout.precision}`;

/**
 * The posterior of a normal prior around the planner's own figure, as wide as its interval, after the runs of one key: one run moves the
 * plan most of the way where the planner is unsure, and little where its interval is as narrow as runs differ.
 */
export function efficiencyOf(runs: readonly Measurement[]): Efficiency {
  const precision = runs.length / RUN_TO_RUN ** 2;
  const prior = 1 / Math.max(...runs.map(priorDeviation)) ** 2;
  const total = runs.reduce((sum, { measured, planned }) => sum + Math.log(measured / planned), 0);
  const mean = total / RUN_TO_RUN ** 2 / (precision + prior);
  return {
    speed: Math.exp(mean),
    deviation: Math.sqrt(1 / (precision + prior) + RUN_TO_RUN ** 2),
    runs: runs.map(({ runId }) => runId),
    ...memoryOfRuns(runs),
  };
}

const memoriesOf = (runs: readonly Measurement[]) => runs.flatMap(({ memory }) => memory ?? []);

function memoryOfRuns(runs: readonly Measurement[]): { memory?: MemoryFactor } {
  const memories = memoriesOf(runs);
  return memories.length === 0 ? {} : { memory: memoryFactorOf(memories) };
}

/** The posterior of a normal prior around the plan, as for speed. */
export function memoryFactorOf(runs: readonly MemoryMeasurement[]): MemoryFactor {
  const logarithms = runs.map(({ state, rest, measured }) =>
    Math.log(Math.max(measured - state, LEAST_REST * rest) / rest),
  );
  const total = logarithms.reduce((sum, value) => sum + value, 0);
  const precision = 1 / MEMORY_RUN_TO_RUN ** 2;
  return {
    factor: Math.exp((total * precision) / (runs.length * precision + 1 / MEMORY_PRIOR ** 2)),
    runs: runs.length,
  };
}

const priorDeviation = ({ interval80: [low, high] }: Measurement) => Math.log(high / low) / 2 / HALF_OF_80;

/** The calibration of an environment after its runs; a run that is named twice counts as its last measurement. */
export function calibrate(environment: string, measurements: readonly Measurement[]): Calibration {
  const last = [...new Map(measurements.map((m) => [m.runId, m])).values()];
  const keys = [...new Set(last.map(({ key }) => key))].sort();
  const efficiencies = keys.map((key) => [key, efficiencyOf(last.filter((m) => m.key === key))] as const);
  return { schema: 1, environment, measurements: last, efficiencies: Object.fromEntries(efficiencies) };
}

/** How far plans were off, and how far they are when each run is left out of its own calibration. */
export function calibrationError(measurements: readonly Measurement[]): CalibrationError {
  const speed = errorOf(
    measurements,
    ({ planned, measured }) => Math.abs(planned - measured) / measured,
    (one, others) => Math.abs(one.planned * efficiencyOf(others).speed - one.measured) / one.measured,
  );
  const memories = measurements.flatMap(({ memory, ...run }) => (memory ? [{ ...run, ...memory }] : []));
  const memory = errorOf(memories, memoryError(1), (one, others) => memoryError(memoryFactorOf(others).factor)(one));
  return { ...speed, ...(memories.length > 0 && { memory }) };
}

const memoryError =
  (factor: number) =>
  ({ state, rest, measured }: MemoryMeasurement): number =>
    Math.abs(state + factor * rest - measured) / measured;

function errorOf<T extends Pick<Measurement, 'key' | 'runId'>>(
  runs: readonly T[],
  alone: (run: T) => number,
  calibrated: (run: T, others: readonly T[]) => number,
): Omit<CalibrationError, 'memory'> {
  const left = runs.flatMap((one) => {
    const others = runs.filter(({ key, runId }) => key === one.key && runId !== one.runId);
    return others.length === 0 ? [] : [calibrated(one, others)];
  });
  return { before: mean(runs.map(alone)), after: left.length === 0 ? null : mean(left), judged: left.length };
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

/** The 80 % interval around a calibrated speed. */
export const calibratedInterval = (tokensPerSecond: number, { deviation }: Efficiency): [low: number, high: number] => [
  tokensPerSecond * Math.exp(-HALF_OF_80 * deviation),
  tokensPerSecond * Math.exp(HALF_OF_80 * deviation),
];
