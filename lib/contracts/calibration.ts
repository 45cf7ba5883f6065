import { z } from 'zod';

const speed = z.number().positive();
const interval = z.tuple([speed, speed]);

/** `environments/<name>.calibration.json`: tokens a second and GPU of one's own runs, and what follows from them. */
export const calibrationSchema = z.object({
  schema: z.literal(1),
  environment: z.string(),
  measurements: z.array(
    z.object({ runId: z.string(), key: z.string(), planned: speed, interval80: interval, measured: speed }),
  ),
  efficiencies: z.record(z.string(), z.object({ speed, deviation: z.number().positive(), runs: z.array(z.string()) })),
});

/** What calibration needs of `slipway report --json`. */
export const measuredReportSchema = z.object({
  runId: z.string(),
  environment: z.string(),
  speed: z.object({ key: z.string(), planned: speed, interval80: interval, measured: speed.nullable() }).optional(),
});
