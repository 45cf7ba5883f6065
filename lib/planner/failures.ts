/**
 * Failures of one node per day. Hardware alone: 6.5 per 1,000 node-days (Meta RSC-1, arXiv 2410.21680; Llama 3 405B gives 3.8, arXiv
 * 2407.21783). Jobs there failed 3.7 times as often as hardware explains, so both are counted.
 */
const HARDWARE_FAILURES_PER_NODE_DAY = 6.5e-3;
const ALL_OVER_HARDWARE = 3.7;

/** From failure to the first new step: health check or repair, start of the instances, load of the checkpoint. */
export const RESTART_SECONDS = 15 * 60;

const MINUTE = 60;
/** Intervals outside these bounds help nobody: below, saving costs more than it keeps; above, real failure rates are not known well enough. */
export const INTERVAL_BOUNDS_MINUTES: readonly [low: number, high: number] = [3, 60];

export interface CheckpointPlan {
  /** Parameters in fp32 and optimizer state, all ranks together. */
  sizeGiB: number;
  /** Until the last rank's shard lies in the store. */
  saveSeconds: number;
  /** How long a save holds up training. */
  blockedSeconds: number;
  intervalMinutes: number;
  /** The optimum of Young and Daly before the bounds. */
  optimalIntervalMinutes: number;
  /** PUT and part-upload requests a second while saving. */
  requestsPerSecond: number;
}

export const meanHoursBetweenFailures = (nodes: number) =>
  24 / (nodes * HARDWARE_FAILURES_PER_NODE_DAY * ALL_OVER_HARDWARE);

/** Bytes per parameter of a full training checkpoint: fp32 master copy and two moments. */
const CHECKPOINT_BYTES_PER_PARAMETER = 12;
/** What one node sustains to S3 with parallel multipart uploads, at most; slower networks give less. */
const NODE_TO_S3_BYTES_PER_SECOND = 5e9;
/** Half of a node's network is left to training while a save runs. */
const NETWORK_SHARE = 0.5;
/** Bandwidth of copying shards from the GPU to host memory. */
const DEVICE_TO_HOST_BYTES_PER_SECOND = 10e9;
/** Part size of multipart uploads of the S3 connector (64 MB). */
const PART_BYTES = 64e6;

/** Size, duration and interval of checkpoints; a sharded, asynchronous save blocks only while it copies to host memory. */
export function checkpointPlan(
  parameters: number,
  nodes: number,
  gpusPerNode: number,
  networkGbps: number,
): CheckpointPlan {
  const bytes = parameters * CHECKPOINT_BYTES_PER_PARAMETER;
  const perNode = Math.min(NODE_TO_S3_BYTES_PER_SECOND, ((networkGbps * 1e9) / 8) * NETWORK_SHARE);
  const saveSeconds = bytes / (perNode * nodes) + 5;
  const blockedSeconds = bytes / (nodes * gpusPerNode) / DEVICE_TO_HOST_BYTES_PER_SECOND + 1;
  const optimal = Math.sqrt(2 * blockedSeconds * meanHoursBetweenFailures(nodes) * 3600) / MINUTE;
  const [low, high] = INTERVAL_BOUNDS_MINUTES;
  return {
    sizeGiB: bytes / 2 ** 30,
    saveSeconds,
    blockedSeconds,
    optimalIntervalMinutes: optimal,
    // A save must be over before the next one begins.
    intervalMinutes: Math.max(low, saveSeconds / MINUTE, Math.min(high, optimal)),
    requestsPerSecond: bytes / PART_BYTES / saveSeconds,
  };
}

/** Share of the wall time that ends up in kept steps: saves, lost work (half an interval a failure) and restarts taken off. */
export function expectedGoodput(
  plan: Pick<CheckpointPlan, 'blockedSeconds' | 'intervalMinutes'>,
  nodes: number,
): number {
  const interval = plan.intervalMinutes * MINUTE;
  const between = meanHoursBetweenFailures(nodes) * 3600;
  const lost = plan.blockedSeconds / interval + (interval / 2 + RESTART_SECONDS) / between;
  return 1 / (1 + lost);
}
