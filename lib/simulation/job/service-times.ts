import type { SimJob } from './job';

/** From the end of the containers to the end of the job, while its artifacts are uploaded. */
export const UPLOAD_MS = 60_000;
/** From StopTrainingJob to Stopped where a scenario says nothing else. */
export const STOP_MS = 120_000;
/** SIGTERM, then 120 s: https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-dockerfile.html */
export const GRACE_MS = 120_000;
/** How long a trainer needs for a checkpoint that it was asked for. */
export const SAVE_MS = 60_000;
/** The driver looks this often (containers/driver/slipway_driver/hand_over.py). */
export const LOOKS_MS = 30_000;

/** As containers/driver/slipway_driver/process_environment.py: the trainer leaves this long before its limit. */
const reserveMs = (runtimeMs: number): number => Math.min(900_000, 0.05 * runtimeMs);

/** How long before the limit of its run time the built-in trainer saves and leaves: the reserve, two steps and two saves. */
export const leavesEarlyMs = ({ secondsPerStep }: SimJob, runtimeMs: number): number =>
  reserveMs(runtimeMs) + 2 * secondsPerStep * 1000 + 2 * SAVE_MS;
