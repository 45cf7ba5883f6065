import { HALF_OF_80 } from '../../config/normal';
import { instancesOn } from '../capacity-options';
import type { Ledger } from '../ledger';
import { type EpochMs, isOver, type RunRecord } from '../record';
import { type FleetRun, failureBelief } from './fleet-rate';

/** How far a run is and when it will be done. */
export interface Outlook {
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
