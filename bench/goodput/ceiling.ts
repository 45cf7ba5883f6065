import type { Constants, Rate } from './constants';
import { meanSecondsBetween } from './failures';

/**
 * What the constants allow at best, by arithmetic: failures are noticed at once, a save is committed the moment it blocks, its
 * interval is the best one for the true rate, nothing is handed over, and the first start is free. What is left is what no policy
 * over this ladder can save: a lost machine costs capacity, a new attempt and a load, every other failure a restart in place and a load.
 * @param localLoad whether restarts in place load from the host's own copies
 */
export function ceiling(constants: Constants, rate: Rate, nodes: number, localLoad: boolean): number {
  const { newAttemptMinutes, restartInPlaceMinutes, checkpointLoadMinutes, capacityWait, slipway } = constants;
  const shares = constants.shares[rate];
  const total = shares.node + shares.process + shares.network + shares.hang;
  const meanWait = capacityWait.medianMinutes * Math.exp(capacityWait.sigma ** 2 / 2);
  const newAttempt = 60 * (meanWait + newAttemptMinutes + checkpointLoadMinutes);
  const inPlace = 60 * (restartInPlaceMinutes + (localLoad ? slipway.localLoadMinutes : checkpointLoadMinutes));
  const down = (shares.node * newAttempt + (total - shares.node) * inPlace) / total;
  const between = meanSecondsBetween(constants, rate, nodes);
  const cost = slipway.saveBlockedSeconds;
  const kept = (interval: number) => between * (interval / (interval + cost)) - interval / 2;
  const best = Math.sqrt(2 * cost * between);
  return Math.max(kept(best), kept(best - cost)) / (between + down);
}
