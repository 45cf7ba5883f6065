import { HALF_OF_80 } from '../../config/formats/numbers';
import type { LayoutInput } from '../layout';

/** One measured run: the planner's prediction for it, and the measured values. */
export interface Measurement {
  runId: string;
  /** `calibrationKey` of its layout. */
  key: string;
  /** Tokens per second and GPU: the uncalibrated prediction, its 80 % interval, and the median over the run's steps. */
  planned: number;
  interval80: readonly [low: number, high: number];
  measured: number;
  /** Absent when the run did not print its memory, or was short of memory. */
  memory?: MemoryMeasurement;
}

/** GiB of the fullest GPU. */
export interface MemoryMeasurement {
  /** Weights, gradients and optimizer, and everything else, both as predicted without calibration. */
  state: number;
  rest: number;
  /** Maximum that the allocator reserved. */
  measured: number;
}

/** Measured speed of the runs of one key, relative to the uncalibrated plan. */
export interface Efficiency {
  /** Factor on the predicted tokens per second. */
  speed: number;
  /** Standard deviation of ln(tokens per second) around the calibrated plan. */
  deviation: number;
  runs: readonly string[];
  /** Measured memory besides weights, gradients and optimizer, relative to the plan; absent when no run reports it. */
  memory?: MemoryFactor;
}

/** Measured memory relative to the plan's, and the number of runs. */
export interface MemoryFactor {
  /** Factor on the predicted GiB of activations, logits, gathered parameters, buffers and fragmentation. */
  factor: number;
  /** Number of runs from which it was learned. */
  runs: number;
}

/** Content of `environments/<name>.calibration.json`. */
export interface Calibration {
  schema: 1;
  environment: string;
  measurements: readonly Measurement[];
  efficiencies: Readonly<Record<string, Efficiency>>;
}

/** Mean absolute relative error of the predicted speed over the runs: without calibration, and with each run calibrated by the others. */
export interface CalibrationError {
  before: number;
  /** null with fewer than two runs of a key: a run must not be evaluated with a calibration that it was part of. */
  after: number | null;
  /** Number of runs in `after`. */
  judged: number;
  /** The same for the maximum memory; absent when no run reports it. */
  memory?: Omit<CalibrationError, 'memory'>;
}

/**
 * Difference between two runs of one layout on other hosts of the same type, standard deviation of ln(tokens per second); see
 * docs/planner.md.
 */
const RUN_TO_RUN = 0.05;

/**
 * The planner's own error for memory other than weights, gradients and optimizer, and the difference between two runs of one layout,
 * standard deviations of ln(GiB); see docs/planner.md.
 */
const MEMORY_PRIOR = 0.2;
const MEMORY_RUN_TO_RUN = 0.03;
/** A measurement below the size of weights, gradients and optimizer cannot be of this layout; it moves a plan no further than this. */
const MIN_REST = 0.1;

/** The key of a calibration: one accelerator, one library, one precision. */
export const calibrationKey = (
  { accelerator, precision, quantized }: Pick<LayoutInput, 'accelerator' | 'precision' | 'quantized'>,
  library: string,
): string => `${accelerator.model}/${library}/${precision}${quantized ? '/nf4' : ''}`;

/**
 * Posterior of a normal prior around the planner's own prediction, with the width of its interval, given the runs of one key: a run moves
 * the plan far where the planner is uncertain, and little where its interval is as narrow as the difference between runs.
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

/** Posterior of a normal prior around the plan, as for speed. */
export function memoryFactorOf(runs: readonly MemoryMeasurement[]): MemoryFactor {
  const logarithms = runs.map(({ state, rest, measured }) =>
    Math.log(Math.max(measured - state, MIN_REST * rest) / rest),
  );
  const total = logarithms.reduce((sum, value) => sum + value, 0);
  const precision = 1 / MEMORY_RUN_TO_RUN ** 2;
  return {
    factor: Math.exp((total * precision) / (runs.length * precision + 1 / MEMORY_PRIOR ** 2)),
    runs: runs.length,
  };
}

const priorDeviation = ({ interval80: [low, high] }: Measurement) => Math.log(high / low) / 2 / HALF_OF_80;

/** The calibration of an environment from its runs; of a run that occurs twice, the last measurement counts. */
export function calibrate(environment: string, measurements: readonly Measurement[]): Calibration {
  const last = [...new Map(measurements.map((m) => [m.runId, m])).values()];
  const keys = [...new Set(last.map(({ key }) => key))].sort();
  const efficiencies = keys.map((key) => [key, efficiencyOf(last.filter((m) => m.key === key))] as const);
  return { schema: 1, environment, measurements: last, efficiencies: Object.fromEntries(efficiencies) };
}

/** Errors of the plans without calibration, and with each run left out of its own calibration. */
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
