/**
 * Failures of one node per day. Hardware alone: 6.5 per 1,000 node-days (Meta RSC-1, arXiv 2410.21680; Llama 3 405B gives 3.8, arXiv
 * 2407.21783). Jobs there failed 3.7 times as often as hardware explains, so both are counted.
 */
const HARDWARE_FAILURES_PER_NODE_DAY = 6.5e-3;
const ALL_OVER_HARDWARE = 3.7;

/** From a failure to the first new step: health check or repair, start of the instances, load of the checkpoint. */
export const RESTART_SECONDS = 15 * 60;

/**
 * Of 258 node failures, 226 were device failures (148 GPU, 72 HBM3, 6 silent data corruption), after which the host's driver still runs; 32
 * were host maintenance, which takes the whole machine (Llama 3 405B, arXiv 2407.21783, table 5).
 */
const DEVICE_SHARE = 226 / 258;

/** From such a failure to the first new step when a spare host takes over: detection, restart of all processes, load of the checkpoint. */
export const SPARE_RESTART_SECONDS = 3.5 * 60;

const MINUTE = 60;
const DAY = 86_400;
/**
 * Intervals outside these bounds are not useful: below, saving costs more than it protects; above, real failure rates are not known well
 * enough.
 */
export const INTERVAL_BOUNDS_MINUTES: readonly [low: number, high: number] = [3, 60];

/** Size and duration of one save, and how often to save. */
export interface CheckpointPlan {
  /** Parameters in fp32 and optimizer state, summed over all ranks. */
  sizeGiB: number;
  /** Until the last rank's shard is stored. */
  saveSeconds: number;
  /** How long a save blocks training. */
  blockedSeconds: number;
  intervalMinutes: number;
  /** The Young-Daly optimum before the bounds are applied. */
  optimalIntervalMinutes: number;
  /** PUT and part-upload requests per second during a save. */
  requestsPerSecond: number;
}

/** Mean hours between hardware failures in a cluster with this many nodes. */
export const meanHoursBetweenFailures = (nodes: number) =>
  24 / (nodes * HARDWARE_FAILURES_PER_NODE_DAY * ALL_OVER_HARDWARE);

/** Maximum rate of one node to S3 with parallel multipart uploads; slower networks reach less. */
const NODE_TO_S3_BYTES_PER_SECOND = 5e9;
/** Share of a node's network that a save may use, so that half is left for training. */
const NETWORK_SHARE = 0.5;
/** Bandwidth of copying shards from the GPU to host memory. */
export const DEVICE_TO_HOST_BYTES_PER_SECOND = 10e9;
/** Part size of multipart uploads of the S3 connector (64 MB). */
const PART_BYTES = 64e6;

/** Rate at which one node sends checkpoints, or copies of its state to another node, beside training. */
export const nodeBytesPerSecond = (networkGbps: number) =>
  Math.min(NODE_TO_S3_BYTES_PER_SECOND, ((networkGbps * 1e9) / 8) * NETWORK_SHARE);

/** Duration and interval of checkpoints of this size; a sharded asynchronous save blocks training only while it copies to host memory. */
export function checkpointPlan(bytes: number, nodes: number, gpusPerNode: number, networkGbps: number): CheckpointPlan {
  const saveSeconds = bytes / (nodeBytesPerSecond(networkGbps) * nodes) + 5;
  const blockedSeconds = bytes / (nodes * gpusPerNode) / DEVICE_TO_HOST_BYTES_PER_SECOND + 1;
  const optimal = Math.sqrt(2 * blockedSeconds * meanHoursBetweenFailures(nodes) * 3600) / MINUTE;
  const [low, high] = INTERVAL_BOUNDS_MINUTES;
  return {
    sizeGiB: bytes / 2 ** 30,
    saveSeconds,
    blockedSeconds,
    optimalIntervalMinutes: optimal,
    // A save must be complete before the next one starts.
    intervalMinutes: Math.max(low, saveSeconds / MINUTE, Math.min(high, optimal)),
    requestsPerSecond: bytes / PART_BYTES / saveSeconds,
  };
}

/** Spare hosts inside a job. */
export interface Spares {
  instances: number;
  /** Maximum duration of an attempt. The next attempt starts with all spare hosts again. */
  attemptSeconds: number;
}

const NO_SPARES: Spares = { instances: 0, attemptSeconds: 0 };

/**
 * Share of the hardware failures that a spare host can absorb. Within an attempt failures are a Poisson process; a failure is absorbed if
 * it affects a device of a host other than the first, and a spare host is left. A failure that is not absorbed ends the attempt.
 */
export function metBySpares(nodes: number, { instances, attemptSeconds }: Spares): number {
  const replaceable = (DEVICE_SHARE * (nodes - 1)) / nodes;
  const atLeast = poissonTails((HARDWARE_FAILURES_PER_NODE_DAY * nodes * attemptSeconds) / DAY);
  let all = 0;
  let met = 0;
  // The k-th failure of an attempt happens only if the k - 1 failures before it were absorbed.
  for (let k = 1; k <= instances; k++) {
    const happens = replaceable ** (k - 1) * atLeast();
    all += happens;
    met += replaceable * happens;
  }
  all += replaceable ** instances * atLeast();
  return met === 0 ? 0 : met / all;
}

/** Returns the probabilities of at least 1, 2, 3, ... events, one per call. */
function poissonTails(mean: number): () => number {
  let tail = 1;
  let exactly = Math.exp(-mean);
  let k = 0;
  return () => {
    tail = Math.max(0, tail - exactly);
    k += 1;
    exactly *= mean / k;
    return tail;
  };
}

/** Share of the wall time spent on kept steps, after subtracting saves, lost work (half an interval per failure) and restarts. */
export function expectedGoodput(
  plan: Pick<CheckpointPlan, 'blockedSeconds' | 'intervalMinutes'>,
  nodes: number,
  spares: Spares = NO_SPARES,
): number {
  const met = metBySpares(nodes, spares) / ALL_OVER_HARDWARE;
  const restart = RESTART_SECONDS - met * (RESTART_SECONDS - SPARE_RESTART_SECONDS);
  const interval = plan.intervalMinutes * MINUTE;
  const between = meanHoursBetweenFailures(nodes) * 3600;
  const lost = plan.blockedSeconds / interval + (interval / 2 + restart) / between;
  return 1 / (1 + lost);
}
