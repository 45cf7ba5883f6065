import { drawsFrom } from '../../lib/core/planner/deadline/course';
import type { Constants, Rate } from './constants';

export type FailureKind = keyof Constants['shares']['llama3'];

export interface Failure {
  /** Seconds after the start. */
  at: number;
  kind: FailureKind;
  /** A hang that no collective notices. */
  silent: boolean;
  /** The machine is gone, and not only a device of it. */
  losesMachine: boolean;
  /** The next host, which holds the copies of this one's state, breaks as well. */
  losesPartner: boolean;
  /** The host belongs to the next attempt again, and fails there after so many seconds; undefined if it does not return. */
  relapseSeconds: number | undefined;
  /** Wait for capacity, should this failure cost the job, seconds. */
  capacityWaitSeconds: number;
}

/** A stream of numbers in [0, 1) that depends on the seed alone. */
export const randomStream = (seed: number): (() => number) => drawsFrom(seed).uniform;

/**
 * Failures of one run, in order: a Poisson process of the rate, kinds by their shares. Both policies meet the same ones.
 * Seeds come in antithetic pairs (one draws u where the other draws 1 - u), so that the mean over few seeds strays less from
 * what is expected: at 64 nodes a run meets seven failures, give or take three.
 */
export function failuresOf(constants: Constants, rate: Rate, nodes: number, seed: number): Failure[] {
  const random = pairedStream(seed, nodes * 31 + (rate === 'llama3' ? 1 : 2));
  const which = pairedStream(seed, nodes * 31 + (rate === 'llama3' ? 3 : 4));
  const back = pairedStream(seed, nodes * 31 + (rate === 'llama3' ? 5 : 6));
  const meanSeconds = meanSecondsBetween(constants, rate, nodes);
  const failures: Failure[] = [];
  const exponential = () => -Math.log(1 - random()) * meanSeconds;
  for (let at = exponential(); at < constants.days * 86_400; at += exponential()) {
    const kind = pickKind(constants.shares[rate], random());
    const { medianMinutes, sigma } = constants.capacityWait;
    const capacityWaitSeconds = 60 * medianMinutes * Math.exp(sigma * normal(random));
    const silent = kind === 'hang' && random() < constants.silentHangShare;
    const losesMachine = kind === 'node' && which() < constants.lostMachineShare;
    const losesPartner = kind === 'node' && !losesMachine && which() < constants.lostPartnerShare;
    const returns = kind === 'node' && !losesMachine && back() < constants.returningHostShare;
    const relapseSeconds = returns ? -Math.log(1 - back()) * constants.relapseHours * 3600 : undefined;
    failures.push({ at, kind, silent, losesMachine, losesPartner, relapseSeconds, capacityWaitSeconds });
  }
  return failures;
}

function pairedStream(seed: number, world: number): () => number {
  const plain = randomStream(Math.ceil(seed / 2) * 7919 + world);
  // Never 1: the logarithm of 1 - u is taken.
  return seed % 2 === 1 ? plain : () => Math.min(1 - plain(), 1 - 2 ** -33);
}

export function meanSecondsBetween(constants: Constants, rate: Rate, nodes: number): number {
  return (86_400 * 1000) / (constants.failuresPer1000NodeDays[rate] * nodes);
}

function pickKind(shares: Constants['shares']['llama3'], at: number): FailureKind {
  const kinds = Object.entries(shares) as [FailureKind, number][];
  const total = kinds.reduce((sum, [, share]) => sum + share, 0);
  let left = at * total;
  for (const [kind, share] of kinds) {
    if (left < share) return kind;
    left -= share;
  }
  return 'node';
}

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
