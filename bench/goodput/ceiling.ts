import type { Constants, Rate } from './constants';
import { meanSecondsBetween } from './failures';

/**
 * What the constants allow at best, by arithmetic: failures are noticed at once, a save is committed the moment it blocks, its
 * interval is the best one for the true rate, a broken network costs no step, nothing is handed over, the first start is free, and
 * restarts in place load from the hosts' own copies. What is left is what no policy over these capacity options can save: an attempt that
 * ends costs capacity, a start and a load, every other failure a restart in place and a load.
 * @param spares whether a spare host is there whenever one can take a broken one's place
 */
export function ceiling(constants: Constants, rate: Rate, nodes: number, spares: boolean): number {
  const { newAttemptMinutes, restartInPlaceMinutes, checkpointLoadMinutes, capacityWait, slipway } = constants;
  const shares = constants.shares[rate];
  const total = shares.node + shares.process + shares.network + shares.hang;
  const replaced = spares ? (1 - constants.lostMachineShare) * (1 - 1 / nodes) : 0;
  const ended = (shares.node * (1 - replaced)) / total;
  const meanWait = capacityWait.medianMinutes * Math.exp(capacityWait.sigma ** 2 / 2);
  const newAttempt = 60 * (meanWait + newAttemptMinutes + checkpointLoadMinutes);
  const inPlace = 60 * (restartInPlaceMinutes + slipway.localLoadMinutes);
  const down = ended * newAttempt + (1 - ended) * inPlace;
  const between = meanSecondsBetween(constants, rate, nodes);
  const cost = slipway.saveBlockedSeconds;
  const losing = 1 - shares.network / total;
  const kept = (interval: number) => between * (interval / (interval + cost)) - (losing * interval) / 2;
  const best = Math.sqrt((2 * cost * between) / losing);
  return Math.max(kept(best), kept(best - cost)) / (between + down);
}
