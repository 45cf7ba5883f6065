import constants from '../../catalog/trainer-constants.json';
import type { LayoutInput } from '../layout';

const DAY = 86_400;
const [SHORTEST_MINUTES = 0, LONGEST_MINUTES = Number.POSITIVE_INFINITY] = constants.saveIntervalMinutes;

/** What a save costs, in seconds: blocked training, and slower training while it is written. */
export const saveCostSeconds = (plan: Pick<CheckpointPlan, 'blockedSeconds' | 'saveSeconds'>): number =>
  plan.blockedSeconds + constants.savesSlowdown * plan.saveSeconds;

/** Previous failures of a run, and the node-days in which they occurred. */
export interface FailureHistory {
  failures: number;
  nodeDays: number;
}

/**
 * Seconds between saves that cost least, before they are bounded, as the built-in trainer computes them (containers/trainer,
 * checkpoint/interval.py): a gamma prior over the failure rate, then Young and Daly.
 * @param costSeconds of a save, or of a copy in memory
 * @param endedShare share of the failures after which a save is needed: all, or those that end the job where copies in memory cover the others;
 *   `history` has these alone
 */
export function optimalSaveSeconds(
  costSeconds: number,
  nodes: number,
  endedShare: number,
  history: FailureHistory = { failures: 0, nodeDays: 0 },
): number {
  const { failures, perNodeDay } = constants.failurePrior;
  const rate = (failures + history.failures) / (failures / (perNodeDay * endedShare) + history.nodeDays);
  return Math.sqrt((2 * costSeconds * DAY) / (rate * nodes));
}

/** Share of the failures that end the job of a run with copies in memory. */
export const endedShare = (hasSpares: boolean): number =>
  hasSpares ? constants.endedShare.withSpares : constants.endedShare.withoutSpares;

/** Seconds within the bounds outside which intervals are not useful: saving costs more than it protects, or rates are not known well enough. */
export const boundedSaveSeconds = (seconds: number): number =>
  Math.min(60 * LONGEST_MINUTES, Math.max(60 * SHORTEST_MINUTES, seconds));

const HARDWARE_FAILURES_PER_NODE_DAY = constants.failuresPerNodeDay.rsc1Nodes;
const HARDWARE_SHARE = HARDWARE_FAILURES_PER_NODE_DAY / constants.failuresPerNodeDay.rsc1Jobs;

/**
 * Seconds of a restart in place, before loading: of the end and start of all ranks with the model (measured on CPUs: docs/recovery.md; CUDA
 * takes longer), of communicators (under 30 s for more than 10,000 GPUs: MegaScale, arXiv 2402.15627), and of first steps with the files of the
 * compiler (13.1 s on an H200: docs/evidence/2026-11-27-h200.md).
 */
export const RESTART_SECONDS = { prepare: 10, rendezvous: 30, firstSteps: 15 };
const STARTED_SECONDS = RESTART_SECONDS.rendezvous + RESTART_SECONDS.firstSteps;

/** Of a new attempt: from its creation to the start of its containers, and the load of a checkpoint. */
export const NEW_ATTEMPT = { startSeconds: 15 * 60, loadSeconds: 60 };

/** From a failure that ends the job to the first new step: start of the instances, load of the checkpoint, first steps. */
export const NEW_ATTEMPT_SECONDS = NEW_ATTEMPT.startSeconds + NEW_ATTEMPT.loadSeconds + STARTED_SECONDS;

/** Share of the hardware failures after which the driver of the host still runs, so that a spare host can take over. */
const DEVICE_SHARE = 1 - constants.lostMachineShare;

/** Detection of a failure that leaves the job (crashes at once, hangs in half a minute), and load of a copy; a checkpoint takes longer. */
const NOTICED_AND_LOADED_SECONDS = { copies: 30, checkpoint: 85 };

/** From a failure to the first new step in the same job. */
export const inPlaceSeconds = (hasCopies: boolean): number =>
  RESTART_SECONDS.prepare + STARTED_SECONDS + NOTICED_AND_LOADED_SECONDS[hasCopies ? 'copies' : 'checkpoint'];

const MINUTE = 60;

/** Mean hours between failures of any kind of a job on this many nodes, at the rate of RSC-1. */
export const meanHoursBetweenFailures = (nodes: number) => 24 / (nodes * constants.failuresPerNodeDay.rsc1Jobs);

/** Maximum rate of one node to S3 with parallel multipart uploads; slower networks reach less. */
const NODE_TO_S3_BYTES_PER_SECOND = 5e9;
/** Share of a node's network that a save may use, so that half is left for training. */
const NETWORK_SHARE = 0.5;
/** Bandwidth of copying shards from the GPU to host memory. */
export const DEVICE_TO_HOST_BYTES_PER_SECOND = 10e9;

/** Rate at which one node sends checkpoints, or copies of its state to another node, beside training. */
export const nodeBytesPerSecond = (networkGbps: number) =>
  Math.min(NODE_TO_S3_BYTES_PER_SECOND, ((networkGbps * 1e9) / 8) * NETWORK_SHARE);

/**
 * Duration and interval of checkpoints of this size; a sharded asynchronous save blocks training only while it copies to host memory, and not
 * at all if it is written from a copy in memory.
 * @param ended share of the failures that end the job, if copies in memory cover the others; undefined = no copies
 */
export function checkpointPlan(
  bytes: number,
  { nodes, gpusPerNode, networkGbps }: Pick<LayoutInput, 'nodes' | 'gpusPerNode' | 'networkGbps'>,
  ended?: number,
) {
  const saveSeconds = bytes / (nodeBytesPerSecond(networkGbps) * nodes) + 5;
  const copying = bytes / (nodes * gpusPerNode) / DEVICE_TO_HOST_BYTES_PER_SECOND + 1;
  const blockedSeconds = ended === undefined ? copying : 0;
  const optimal = optimalSaveSeconds(saveCostSeconds({ blockedSeconds, saveSeconds }), nodes, ended ?? 1);
  return {
    /** Parameters in fp32 and optimizer state, summed over all ranks. */
    sizeGiB: bytes / 2 ** 30,
    /** Until the last rank's shard is stored. */
    saveSeconds,
    /** How long a save blocks training. */
    blockedSeconds,
    /** The Young-Daly optimum before the bounds are applied. */
    optimalIntervalMinutes: optimal / MINUTE,
    // A save must be complete before the next one starts.
    intervalMinutes: Math.max(saveSeconds, boundedSaveSeconds(optimal)) / MINUTE,
  };
}

export type CheckpointPlan = ReturnType<typeof checkpointPlan>;

/** Spare hosts inside a job. */
export interface Spares {
  instances: number;
  /** Maximum duration of an attempt. The next attempt starts with all spare hosts again. */
  attemptSeconds: number;
}

const NO_SPARES: Spares = { instances: 0, attemptSeconds: 0 };

/**
 * Share of the hardware failures that a spare host can absorb. Within an attempt failures are a Poisson process; a failure is absorbed if
 * it affects a device and a spare host is left. A failure that is not absorbed ends the attempt.
 */
export function metBySpares(nodes: number, { instances, attemptSeconds }: Spares): number {
  const atLeast = poissonTails((HARDWARE_FAILURES_PER_NODE_DAY * nodes * attemptSeconds) / DAY);
  let all = 0;
  let met = 0;
  // The k-th failure of an attempt happens only if the k - 1 failures before it were absorbed.
  for (let k = 1; k <= instances; k++) {
    const happens = DEVICE_SHARE ** (k - 1) * atLeast();
    all += happens;
    met += DEVICE_SHARE * happens;
  }
  all += DEVICE_SHARE ** instances * atLeast();
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

/** Copies of the state in host memory: what they cost, and what is repeated after a restart in place from them. */
export interface Copies {
  /** Share of the training time. */
  overhead: number;
  lossSeconds: number;
  /** Two: also of the state of a lost host. */
  copies: 1 | 2;
}

/** A consequence of failures: its share of all of them, the time until the first new step, and of steps that are repeated. */
type Consequence = Record<'share' | 'downSeconds' | 'lossSeconds', number>;

/**
 * What failures lead to: without broken hardware, and where a spare host takes over, the ranks start again in place; otherwise a new attempt
 * continues from the last checkpoint.
 */
function consequences(
  { intervalMinutes }: Pick<CheckpointPlan, 'intervalMinutes'>,
  nodes: number,
  spares: Spares,
  copies?: Copies,
): Consequence[] {
  const sinceSave = (intervalMinutes * MINUTE) / 2;
  const replaced = HARDWARE_SHARE * metBySpares(nodes, spares);
  const downSeconds = inPlaceSeconds(copies !== undefined);
  const sinceCopy = copies?.lossSeconds ?? sinceSave;
  return [
    { share: 1 - HARDWARE_SHARE, downSeconds, lossSeconds: sinceCopy },
    { share: replaced, downSeconds, lossSeconds: copies?.copies === 1 ? sinceSave : sinceCopy },
    { share: HARDWARE_SHARE - replaced, downSeconds: NEW_ATTEMPT_SECONDS, lossSeconds: sinceSave },
  ];
}

/** Expected seconds that a failure costs: until the first new step, and of repeated steps. */
export const secondsPerFailure = (...given: Parameters<typeof consequences>): number =>
  consequences(...given).reduce(
    (sum, { share, downSeconds, lossSeconds }) => sum + share * (downSeconds + lossSeconds),
    0,
  );

/** Share of the wall time spent on kept steps, after subtracting saves, copies, repeated steps and restarts. */
export function expectedGoodput(
  plan: Pick<CheckpointPlan, 'blockedSeconds' | 'saveSeconds' | 'intervalMinutes'>,
  nodes: number,
  spares: Spares = NO_SPARES,
  copies?: Copies,
): number {
  const each = secondsPerFailure(plan, nodes, spares, copies);
  const between = meanHoursBetweenFailures(nodes) * 3600;
  const lost = saveCostSeconds(plan) / (plan.intervalMinutes * MINUTE) + (copies?.overhead ?? 0) + each / between;
  return 1 / (1 + lost);
}
