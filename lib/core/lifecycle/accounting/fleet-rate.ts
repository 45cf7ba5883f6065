import { failuresPerNodeDay } from '../../catalog/trainer-constants.json';
import { findCapacityOption, instancesOn } from '../capacity-options';
import type { EpochMs, RunRecord } from '../record';

/** How often another run was interrupted, and for how many host-hours it trained. */
export interface FleetRun {
  interruptions: number;
  hostHours: number;
}

/** Prior belief about a run's failures, before it has had any of its own: a Gamma distribution of the failures of one host per hour. */
export interface FailureBelief {
  shape: number;
  hostHours: number;
}

/** Failures of one host per day. Jobs fail more often than their hosts; observations of other runs of the environment replace this figure. */
const FAILURES_PER_HOST_DAY = failuresPerNodeDay.rsc1Nodes;
/**
 * The weight of that figure, as a number of failures. It is small because runs differ from each other (spot, new hosts) far more than one
 * run varies over time, so a run's own first failure should outweigh it.
 */
const PRIOR_FAILURES = 0.03;
/** Weight of the prior on the spread between runs, in expected failures squared; `npm run bench:eta` shows its effect. */
const PRIOR_SPREAD = 0.05;

/**
 * The belief that follows from other runs: their mean rate, and a spread that reflects how much their counts vary beyond chance. Without
 * other runs it follows from the published figure.
 */
export function failureBelief(fleet: readonly FleetRun[]): FailureBelief {
  const failures = fleet.reduce((sum, { interruptions }) => sum + interruptions, PRIOR_FAILURES);
  const hostHours = fleet.reduce((sum, run) => sum + run.hostHours, (PRIOR_FAILURES * 24) / FAILURES_PER_HOST_DAY);
  const rate = failures / hostHours;
  const expected = fleet.map((run) => rate * run.hostHours);
  const excess = fleet.reduce((sum, { interruptions }, i) => {
    const mean = expected[i] ?? 0;
    return sum + (interruptions - mean) ** 2 - mean;
  }, 0);
  const weight = expected.reduce((sum, mean) => sum + mean ** 2, PRIOR_SPREAD);
  // A Gamma distribution of shape k has a variance of 1/k times its squared mean.
  const spread = (PRIOR_SPREAD / PRIOR_FAILURES + Math.max(0, excess)) / weight;
  return { shape: 1 / spread, hostHours: 1 / spread / rate };
}

/**
 * The interruptions and host-hours of a run since the queue last admitted it; the record does not say how long it trained before that.
 * Undefined when it has not trained since. Every attempt after the first counts as an interruption, including those that a person
 * requested, and so do in-place restarts and periods without instances of the newest attempt. Time between attempts counts as training.
 */
export function fleetRun(record: RunRecord, now: EpochMs): FleetRun | undefined {
  const { attempt } = record;
  const later = attempt && attemptsAfterFirst(record, attempt.number);
  if (!attempt || later === undefined || later < 0) return undefined;
  const began = later === 0 ? attempt.trainingStartedAt : record.admittedAt;
  if (began === undefined || attempt.trainingStartedAt === undefined) return undefined;
  const hours = ((attempt.endedAt ?? now) - began) / 3_600_000;
  if (hours <= 0) return undefined;
  const interruptions = later + (attempt.progress?.vitals?.restarts ?? 0) + (attempt.pauses?.times ?? 0);
  return { interruptions, hostHours: hours * Math.max(1, instancesOn(record, attempt.capacityOptionId)) };
}

/** Attempts after the first one since the last admission; undefined for a record of an older version with more than one attempt. */
function attemptsAfterFirst({ attemptsAtAdmission }: RunRecord, number: number): number | undefined {
  if (attemptsAtAdmission === undefined) return number === 1 ? 0 : undefined;
  return number - attemptsAtAdmission - 1;
}

/** Whether two runs use the same kind of capacity on the same instance types; other runs are not comparable. */
export function isAlike(a: RunRecord, b: RunRecord): boolean {
  const [one, other] = [a, b].map((record) => {
    const option = findCapacityOption(record, record.attempt?.capacityOptionId ?? record.capacityOptionId);
    return option && `${option.usage} ${option.instances.map(({ instanceType }) => instanceType).join()}`;
  });
  return one !== undefined && one === other;
}
