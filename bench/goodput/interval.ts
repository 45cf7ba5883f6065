import type { Constants } from './constants';

/** As containers/trainer computes it (checkpoint/interval.py): a gamma prior over the failure rate, then Young and Daly. */
const PRIOR_FAILURES = 2;
const PRIOR_PER_NODE_DAY = Math.sqrt(3.8e-3 * 24.05e-3);

/** Seconds between saves of a run that has seen `failures` in `seconds` on `nodes`. */
export function saveIntervalSeconds(constants: Constants, nodes: number, failures: number, seconds: number): number {
  const { saveBlockedSeconds, shortestIntervalMinutes, longestIntervalMinutes } = constants.slipway;
  const nodeDays = (nodes * seconds) / 86_400;
  const perNodeDay = (PRIOR_FAILURES + failures) / (PRIOR_FAILURES / PRIOR_PER_NODE_DAY + nodeDays);
  const best = Math.sqrt((2 * saveBlockedSeconds * 86_400) / (perNodeDay * nodes));
  return Math.min(longestIntervalMinutes * 60, Math.max(shortestIntervalMinutes * 60, best));
}
