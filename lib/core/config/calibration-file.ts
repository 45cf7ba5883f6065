import { z } from 'zod';

const positive = z.number().positive();

const measurement = z.object({
  runId: z.string(),
  /** `calibrationKey` of its layout. */
  key: z.string(),
  /** Tokens per second and GPU: the uncalibrated prediction, its 80 % interval, and the median over the run's steps. */
  planned: positive,
  interval80: z.tuple([positive, positive]).readonly(),
  measured: positive,
});

const efficiency = z.object({
  /** Factor on the predicted tokens per second. */
  speed: positive,
  /** Standard deviation of ln(tokens per second) around the calibrated plan. */
  deviation: positive,
  runs: z.array(z.string()),
});

/** `environments/<name>.calibration.json`: measured tokens per second per GPU from the user's runs, and the factors derived from them. */
export const calibrationSchema = z.object({
  schema: z.literal(1),
  environment: z.string(),
  measurements: z.array(measurement),
  efficiencies: z.record(z.string(), efficiency),
});

/** Content of a calibration file. */
export type Calibration = z.output<typeof calibrationSchema>;
/** One measured run: the planner's prediction for it, and the measured values. */
export type Measurement = z.output<typeof measurement>;
/** Measured speed of the runs of one key, relative to the uncalibrated plan. */
export type Efficiency = z.output<typeof efficiency>;

/** The parts of `slipway report --json` that calibration reads. */
export const measuredReportSchema = z.object({
  runId: z.string(),
  environment: z.string(),
  speed: measurement.omit({ runId: true }).extend({ measured: positive.nullable() }).optional(),
});
