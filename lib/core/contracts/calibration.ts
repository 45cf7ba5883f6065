import { z } from 'zod';

const speed = z.number().positive();
const interval = z.tuple([speed, speed]);

const gib = z.number().nonnegative();
const memory = z.object({ state: gib, rest: speed, measured: speed });

/**
 * `environments/<name>.calibration.json`: measured tokens per second per GPU and GiB of memory from the user's runs, and the factors
 * derived from them.
 */
export const calibrationSchema = z.object({
  schema: z.literal(1),
  environment: z.string(),
  measurements: z.array(
    z.object({
      runId: z.string(),
      key: z.string(),
      planned: speed,
      interval80: interval,
      measured: speed,
      memory: memory.optional(),
    }),
  ),
  efficiencies: z.record(
    z.string(),
    z.object({
      speed,
      deviation: z.number().positive(),
      runs: z.array(z.string()),
      memory: z.object({ factor: speed, runs: z.number().int().positive() }).optional(),
    }),
  ),
});

/** The parts of `slipway report --json` that calibration reads. */
export const measuredReportSchema = z.object({
  runId: z.string(),
  environment: z.string(),
  speed: z
    .object({
      key: z.string(),
      planned: speed,
      interval80: interval,
      measured: speed.nullable(),
      memory: memory.extend({ measured: speed.nullable() }).optional(),
    })
    .optional(),
});
