import type { SimJob } from './job';

/** From the end of the containers to the end of the job, while its artifacts are uploaded. */
export const UPLOAD_MS = 60_000;
/** How long a trainer needs for a requested checkpoint. */
export const SAVE_MS = 60_000;
/** Interval at which the driver polls for requests (containers/driver/slipway_driver/background.py). */
export const HEALTH_CHECK_MS = 30_000;

/** As in containers/driver/slipway_driver/process_environment.py: the trainer exits this long before its limit. */
const reserveMs = (runtimeMs: number): number => Math.min(900_000, 0.05 * runtimeMs);

/** How long before its run-time limit the built-in trainer saves and exits: the reserve, two steps and two saves. */
export const leavesEarlyMs = ({ secondsPerStep }: SimJob, runtimeMs: number): number =>
  reserveMs(runtimeMs) + 2 * secondsPerStep * 1000 + 2 * SAVE_MS;
