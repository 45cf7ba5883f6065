import type { Calibration, Efficiency, Measurement } from '../../config/calibration-file';
import { HALF_OF_80 } from '../../config/formats/numbers';
import type { LayoutInput } from '../layout';

/**
 * Difference between two runs of one layout on other hosts of the same type, standard deviation of ln(tokens per second); see
 * docs/planner.md.
 */
const RUN_TO_RUN = 0.05;

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

/** The 80 % interval around a calibrated speed. */
export const calibratedInterval = (tokensPerSecond: number, { deviation }: Efficiency): [low: number, high: number] => [
  tokensPerSecond * Math.exp(-HALF_OF_80 * deviation),
  tokensPerSecond * Math.exp(HALF_OF_80 * deviation),
];
