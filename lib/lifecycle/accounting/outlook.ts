import { HALF_OF_80 } from '../../spec/normal';
import { instancesOn } from '../ladder';
import type { Ledger } from '../ledger';
import { type EpochMs, isOver, type RunRecord } from '../record';
import { type FleetRun, failureBelief } from './fleet-rate';

/** How far a run is and when it will be done. */
export interface Outlook {
  /** Share of the run's steps that are made, 0 to 100; null where the file does not say how many there are. */
  progressPercent: number | null;
  /** null while no step was made, and once the run is over. */
  etaAt: EpochMs | null;
  /** The end lies within these four times of five. */
  etaInterval80: [earliest: EpochMs, latest: EpochMs] | null;
}

/** Hours that an interruption costs before the run has shown its own beyond its first start: lost steps, and looks a few minutes apart. */
const UNSEEN_LOSS_HOURS = 0.25;
/** Relative error of a speed: what stays however long it is measured, and what a single step has. */
const SPEED_ERROR = { floor: 0.01, ofOneStep: 0.3 };
const HOUR_MS = 3_600_000;
/** Steps and ends are seen this much later than they happen. */
const LOOK_MS = 300_000;

/** What was seen of the run beside its record: its ledger, how often it was interrupted, and how often others were. */
export interface Seen {
  ledger: Ledger;
  interruptions: number;
  /** Other runs on the same instance types. @default - none */
  fleet?: readonly FleetRun[];
  now: EpochMs;
}

/**
 * When the run will be done, from its own speed and its own failures; honest after a restart, when made steps are made again.
 * @param record with its newest attempt as of now
 */
export function outlook(record: RunRecord, seen: Seen): Outlook {
  const { totalSteps } = record.policy;
  const made = stepsMade(record);
  const progressPercent = totalSteps ? Math.min(100, (100 * made) / totalSteps) : null;
  const unknown = { progressPercent, etaAt: null, etaInterval80: null };
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
    progressPercent,
    etaAt: at(mean, work),
    etaInterval80: [
      at(few, work * (1 - HALF_OF_80 * error)) - LOOK_MS,
      at(many, work * (1 + HALF_OF_80 * error)) + (interruptions > 0 ? lossHours / 2 : 0) * HOUR_MS + LOOK_MS,
    ],
  };
}

/** Steps that the next attempt would not make again: those of a live one, else those of the newest commit. */
function stepsMade({ attempt, committed }: RunRecord): number {
  const isLive = attempt?.phase === 'created';
  return (isLive ? (attempt.progress?.step ?? attempt.resumeFrom?.step) : undefined) ?? committed?.step ?? 0;
}

/** Hours of one kept step with its share of saves and evaluations; undefined while none was made. */
function hoursAStep(made: number, { seconds }: Ledger): number | undefined {
  if (made === 0 || seconds.step === 0) return undefined;
  return (seconds.step + seconds.save + seconds.eval) / made / 3600;
}

/** Failures an hour of training and what one costs: a Gamma prior, updated by what was seen. */
function failures(record: RunRecord, { ledger, interruptions, fleet = [] }: Seen) {
  const { attempt } = record;
  const { seconds } = ledger;
  const hosts = Math.max(1, attempt ? instancesOn(record, attempt.rungId) : 1);
  const belief = failureBelief(fleet);
  const trainedHours = (seconds.step + seconds.save + seconds.eval + seconds.lost) / 3600;
  const shape = interruptions + belief.shape;
  const startHours = (seconds.pending + seconds.startup + seconds.warmup) / (interruptions + 1) / 3600;
  const lostHours = (seconds.lost + seconds.hang + seconds.gap) / 3600;
  const seenLoss = interruptions === 0 ? UNSEEN_LOSS_HOURS : lostHours / interruptions;
  return { rate: shape / (trainedHours + belief.hostHours / hosts), shape, lossHours: startHours + seenLoss };
}

/** What is left of a start that is under way. */
const restartHours = ({ attempt }: RunRecord, lossHours: number): number =>
  attempt?.phase === 'created' && attempt.progress?.step != null ? 0 : lossHours / 2;

/** The count below which a negative binomial of this shape and mean lies with this probability. */
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
