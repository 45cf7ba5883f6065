import { instancesOn, rungWithId } from '../ladder';
import type { EpochMs, RunRecord } from '../record';

/** How often other runs were interrupted, and for how long they trained on how many hosts. */
export interface FleetRun {
  interruptions: number;
  hostHours: number;
}

/** What is believed of a run's failures before it has shown its own: a Gamma distribution of the failures of one host in an hour. */
export interface FailureBelief {
  shape: number;
  hostHours: number;
}

/**
 * Failures of one host in a day: 6.5 in 1,000 node-days, RSC-1 of Meta (https://arxiv.org/abs/2410.21680, read 2026-11-20). Jobs fail more often
 * than their hosts; what other runs of the environment have shown replaces the figure.
 */
const FAILURES_PER_HOST_DAY = 6.5e-3;
/**
 * How many failures that figure counts as much as: runs differ far more from each other (spot, new hosts) than a run from itself, so that the
 * first failure of its own counts for most.
 */
const PRIOR_FAILURES = 0.03;
/** Expected failures, squared, that the belief in such a difference counts as much as; `npm run bench:eta` has what comes of it. */
const PRIOR_SPREAD = 0.05;

/**
 * The belief that other runs lead to: their mean rate, and as much spread as their counts have beyond chance. Without any it is that of the
 * published figure.
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
  // A Gamma of shape k has a variance of 1/k times its squared mean.
  const spread = (PRIOR_SPREAD / PRIOR_FAILURES + Math.max(0, excess)) / weight;
  return { shape: 1 / spread, hostHours: 1 / spread / rate };
}

/**
 * What a record says of its run's interruptions since the queue last let it start: how long it trained before that, the record does not say.
 * Undefined where it has not trained since. Attempts after the first count, also those that a person asked for, and of the newest attempt
 * restarts in place and times without instances; time between attempts counts as training.
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
  return { interruptions, hostHours: hours * Math.max(1, instancesOn(record, attempt.rungId)) };
}

/** Of those since the last admission; undefined in a record of an older version with more than one attempt. */
function attemptsAfterFirst({ attemptsAtAdmission }: RunRecord, number: number): number | undefined {
  if (attemptsAtAdmission === undefined) return number === 1 ? 0 : undefined;
  return number - attemptsAtAdmission - 1;
}

/** Whether two runs have the same kind of capacity on the same instance types: other runs are not comparable. */
export function isAlike(a: RunRecord, b: RunRecord): boolean {
  const [one, other] = [a, b].map((record) => {
    const rung = rungWithId(record, record.attempt?.rungId ?? record.rungId);
    return rung && `${rung.usage} ${rung.instances.map(({ instanceType }) => instanceType).join()}`;
  });
  return one !== undefined && one === other;
}
