import constants from '../../catalog/trainer-constants.json';

const DAY = 86_400;
const [SHORTEST_MINUTES = 0, LONGEST_MINUTES = Number.POSITIVE_INFINITY] = constants.saveIntervalMinutes;

/** What a save costs, in seconds: blocked training, and slower training while it is written. */
export const saveCostSeconds = ({
  blockedSeconds,
  saveSeconds,
}: {
  blockedSeconds: number;
  saveSeconds: number;
}): number => blockedSeconds + constants.savesSlowdown * saveSeconds;

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
