import type { LayoutInput } from './layout';

/** One run of one's own: what the planner says of it, and what it did. */
export interface Measurement {
  runId: string;
  /** `calibrationKey` of its layout. */
  key: string;
  /** Tokens a second and GPU: the planner's without calibration, its 80 % interval, and the median of the run's steps. */
  planned: number;
  interval80: readonly [low: number, high: number];
  measured: number;
}

/** How fast runs of one key are against the uncalibrated plan. */
export interface Efficiency {
  /** Factor on the planned tokens a second. */
  speed: number;
  /** Standard deviation of ln(tokens a second) around the calibrated plan. */
  deviation: number;
  runs: readonly string[];
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
}

/** Half of an 80 % interval in standard deviations of a normal distribution. */
const HALF_OF_80 = 1.2816;
/** What two runs of one layout on other hosts of the same type differ by, standard deviation of ln(tokens a second); see docs/planner.md. */
const RUN_TO_RUN = 0.05;

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
  const left = measurements.flatMap((one) => {
    const others = measurements.filter(({ key, runId }) => key === one.key && runId !== one.runId);
    return others.length === 0
      ? []
      : [Math.abs(one.planned * efficiencyOf(others).speed - one.measured) / one.measured];
  });
  const before = measurements.map(({ planned, measured }) => Math.abs(planned - measured) / measured);
  return { before: mean(before), after: left.length === 0 ? null : mean(left), judged: left.length };
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

/** The 80 % interval around a calibrated speed. */
export const calibratedInterval = (tokensPerSecond: number, { deviation }: Efficiency): [low: number, high: number] => [
  tokensPerSecond * Math.exp(-HALF_OF_80 * deviation),
  tokensPerSecond * Math.exp(HALF_OF_80 * deviation),
];
