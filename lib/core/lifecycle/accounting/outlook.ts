import { failuresPerNodeDay } from '../../catalog/trainer-constants.json';
import { HALF_OF_80 } from '../../config/formats/numbers';
import { findCapacityOption, instancesOn } from '../capacity-options';
import type { Ledger } from '../ledger';
import { type EpochMs, isOver, type RunRecord } from '../record';

/** How often another run was interrupted, and for how many host-hours it trained. */
export interface FleetRun {
  interruptions: number;
  hostHours: number;
}

/** Prior belief about a run's failures, before it has had any of its own: a Gamma distribution of the failures of one host per hour. */
interface FailureBelief {
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
  if (!attempt) return undefined;
  const later = attempt.number - (record.attemptsAtAdmission ?? 0) - 1;
  if (later < 0) return undefined;
  const began = later === 0 ? attempt.trainingStartedAt : record.admittedAt;
  if (began === undefined || attempt.trainingStartedAt === undefined) return undefined;
  const hours = ((attempt.endedAt ?? now) - began) / 3_600_000;
  if (hours <= 0) return undefined;
  const interruptions = later + (attempt.progress?.vitals?.restarts ?? 0) + (attempt.pauses?.times ?? 0);
  return { interruptions, hostHours: hours * Math.max(1, instancesOn(record, attempt.capacityOptionId)) };
}

/** Whether two runs use the same kind of capacity on the same instance types; other runs are not comparable. */
export function isAlike(a: RunRecord, b: RunRecord): boolean {
  const [one, other] = [a, b].map((record) => {
    const option = findCapacityOption(record, record.attempt?.capacityOptionId ?? record.capacityOptionId);
    return option && `${option.usage} ${option.instances.map(({ instanceType }) => instanceType).join()}`;
  });
  return one !== undefined && one === other;
}

interface Outlook {
  /** Share of the steps that are done, 0 to 100; null when the run file does not state the total. */
  progressPercent: number | null;
  /** null before the first step, and once the run is over. */
  etaAt: EpochMs | null;
  /** The run ends within this interval with a probability of 80 %. */
  etaInterval80: [earliest: EpochMs, latest: EpochMs] | null;
}

/**
 * Assumed hours lost per interruption, beyond the restart itself, before the run has had one: lost steps, and the delay until the control
 * plane notices.
 */
const UNSEEN_LOSS_HOURS = 0.25;
/** Relative error of the measured speed: a part that stays however long it is measured, and the part of a single step. */
const SPEED_ERROR = { floor: 0.01, ofOneStep: 0.3 };
const HOUR_MS = 3_600_000;
/** Steps and ends are observed with up to this delay. */
const OBSERVATION_MS = 300_000;

/** What was observed of the run beside its record: its ledger, its interruptions, and those of other runs. */
export interface Seen {
  ledger: Ledger;
  interruptions: number;
  /** Other runs on the same instance types. @default - none */
  fleet?: readonly FleetRun[];
  now: EpochMs;
}

/**
 * Estimates when the run will be done, from its own speed and its own failures; also correct after a restart, when steps are repeated.
 * @param record with its newest attempt as of now
 */
export function outlook(record: RunRecord, seen: Seen): Outlook {
  const { totalSteps } = record.policy;
  const made = stepsMade(record);
  const progress = { progressPercent: progressPercent(record) };
  const unknown = { ...progress, etaAt: null, etaInterval80: null };
  if (totalSteps === undefined || isOver(record) || record.desired === 'stop') return unknown;
  const stepHours = hoursAStep(made, seen.ledger);
  if (stepHours === undefined) return unknown;
  const work = Math.max(0, totalSteps - made) * stepHours;
  const { rate, shape, lossHours } = failures(record, seen);
  const { interruptions } = seen;
  const at = (count: number, hours: number): EpochMs =>
    seen.now + (hours + restartHours(record, lossHours) + count * lossHours) * HOUR_MS;
  const mean = rate * work;
  const error = SPEED_ERROR.floor + SPEED_ERROR.ofOneStep / Math.sqrt(Math.max(1, made));
  const [few, many] = [0.1, 0.9].map((share) => countAt(share, shape, mean)) as [number, number];
  return {
    ...progress,
    etaAt: at(mean, work),
    etaInterval80: [
      at(few, work * (1 - HALF_OF_80 * error)) - OBSERVATION_MS,
      at(many, work * (1 + HALF_OF_80 * error)) + (interruptions > 0 ? lossHours / 2 : 0) * HOUR_MS + OBSERVATION_MS,
    ],
  };
}

/** Share of the steps that are done, 0 to 100; null when the run file does not state the total. */
export function progressPercent(record: RunRecord): number | null {
  const { totalSteps } = record.policy;
  return totalSteps ? Math.min(100, (100 * stepsMade(record)) / totalSteps) : null;
}

/** Steps that the next attempt would not repeat: those of a live attempt, otherwise those of the newest commit. */
function stepsMade({ attempt, committed }: RunRecord): number {
  const isLive = attempt?.phase === 'created';
  return (isLive ? (attempt.progress?.step ?? attempt.resumeFrom?.step) : undefined) ?? committed?.step ?? 0;
}

/** Hours per kept step, including its share of saves and evaluations; undefined before the first step. */
function hoursAStep(made: number, { seconds }: Ledger): number | undefined {
  if (made === 0 || seconds.step === 0) return undefined;
  return (seconds.step + seconds.save + seconds.eval) / made / 3600;
}

/** Failures per hour of training and the cost of each: a Gamma prior, updated by what was observed. */
function failures(record: RunRecord, { ledger, interruptions, fleet = [] }: Seen) {
  const { attempt } = record;
  const { seconds } = ledger;
  const hosts = Math.max(1, attempt ? instancesOn(record, attempt.capacityOptionId) : 1);
  const belief = failureBelief(fleet);
  const trainedHours = (seconds.step + seconds.save + seconds.eval + seconds.lost) / 3600;
  const shape = interruptions + belief.shape;
  const startHours = (seconds.pending + seconds.startup + seconds.warmup) / (interruptions + 1) / 3600;
  const lostHours = (seconds.lost + seconds.hang + seconds.gap) / 3600;
  const seenLoss = interruptions === 0 ? UNSEEN_LOSS_HOURS : lostHours / interruptions;
  return { rate: shape / (trainedHours + belief.hostHours / hosts), shape, lossHours: startHours + seenLoss };
}

/** Remaining hours of a start that is under way. */
const restartHours = ({ attempt }: RunRecord, lossHours: number): number =>
  attempt?.phase === 'created' && attempt.progress?.step != null ? 0 : lossHours / 2;

/** Quantile of a negative binomial distribution: the smallest count whose cumulative probability reaches `share`. */
export function countAt(share: number, shape: number, mean: number): number {
  if (mean <= 0) return 0;
  const q = mean / (mean + shape);
  let probability = (1 - q) ** shape;
  let total = probability;
  let count = 0;
  for (; total < share && count < 10_000; count++) {
    probability *= (q * (count + shape)) / (count + 1);
    total += probability;
  }
  return count;
}
