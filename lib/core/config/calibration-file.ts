import { z } from 'zod';

const positive = z.number().positive();
const gib = z.number().nonnegative();

/** GiB of the fullest GPU. */
const memoryMeasurement = z.object({
  /** Weights, gradients and optimizer, and everything else, both as predicted without calibration. */
  state: gib,
  rest: positive,
  /** Maximum that the allocator reserved. */
  measured: positive,
});

const measurement = z.object({
  runId: z.string(),
  /** `calibrationKey` of its layout. */
  key: z.string(),
  /** Tokens per second and GPU: the uncalibrated prediction, its 80 % interval, and the median over the run's steps. */
  planned: positive,
  interval80: z.tuple([positive, positive]).readonly(),
  measured: positive,
  /** Absent when the run did not print its memory, or was short of memory. */
  memory: memoryMeasurement.optional(),
});

const efficiency = z.object({
  /** Factor on the predicted tokens per second. */
  speed: positive,
  /** Standard deviation of ln(tokens per second) around the calibrated plan. */
  deviation: positive,
  runs: z.array(z.string()),
  /** Factor on the predicted GiB of everything but weights, gradients and optimizer; absent when no run reports its memory. */
  memory: z.object({ factor: positive, runs: z.int().positive() }).optional(),
});

/**
 * `environments/<name>.calibration.json`: measured tokens per second per GPU and GiB of memory from the user's runs, and the factors
 * derived from them.
 */
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
/** Predicted and measured memory of a run. */
export type MemoryMeasurement = z.output<typeof memoryMeasurement>;
/** Measured speed and memory of the runs of one key, relative to the uncalibrated plan. */
export type Efficiency = z.output<typeof efficiency>;

/** The parts of `slipway report --json` that calibration reads. */
export const measuredReportSchema = z.object({
  runId: z.string(),
  environment: z.string(),
  speed: measurement
    .omit({ runId: true })
    .extend({
      measured: positive.nullable(),
      memory: memoryMeasurement.extend({ measured: positive.nullable() }).optional(),
    })
    .optional(),
});
