import type { Constants, Rate } from './constants';
import { meanSecondsBetween } from './failures';
import { savesOf } from './saves';

/**
 * What the constants allow at best, by arithmetic: failures are noticed at once, a save is committed the moment it blocks, its
 * interval is the best one for the true rate, a broken network costs no step, nothing is handed over, the first start is free, and
 * restarts in place lose nothing where copies in memory are kept. What is left is what no policy over these capacity options can save: an attempt that
 * ends costs capacity, a start and a load, every other failure a restart in place and a load.
 * @param spares whether a spare host is there whenever one can take a broken one's place
 */
export function ceiling(constants: Constants, rate: Rate, nodes: number, spares: boolean): number {
  const { newAttemptMinutes, restartInPlace, checkpointLoadMinutes, capacityWait, slipway } = constants;
  const shares = constants.shares[rate];
  const total = shares.node + shares.process + shares.network + shares.hang;
  const replaced = spares ? 1 - constants.lostMachineShare : 0;
  const ended = (shares.node * (1 - replaced)) / total;
  const meanWait = capacityWait.medianMinutes * Math.exp(capacityWait.sigma ** 2 / 2);
  const { prepareSeconds, rendezvousSeconds, compileSeconds } = restartInPlace;
  const started = rendezvousSeconds + compileSeconds;
  const newAttempt = 60 * (meanWait + newAttemptMinutes + checkpointLoadMinutes) + started;
  const inPlace = prepareSeconds + started + (slipway.memory?.loadSeconds ?? 60 * slipway.localLoadMinutes);
  const down = ended * newAttempt + (1 - ended) * inPlace;
  const between = meanSecondsBetween(constants, rate, nodes);
  const cost = savesOf(constants, nodes).costSeconds;
  const losing = slipway.memory ? ended : 1 - shares.network / total;
  const steps = between * (1 - (slipway.memory?.overhead ?? 0));
  const kept = (interval: number) => steps * (interval / (interval + cost)) - (losing * interval) / 2;
  const best = Math.sqrt((2 * cost * between) / losing);
  return Math.max(kept(best), kept(best - cost)) / (between + down);
}
