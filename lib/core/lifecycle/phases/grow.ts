import { instancesOn, optionsOfKind, parseCapacityOptionId } from '../capacity-options';
import type { EpochMs, RunRecord } from '../record';

/** Capacity must have been available for this long before a job is asked to exit for it. */
const STEADY_MS = 1_800_000;
/** A job is not asked to exit before it has trained this long. */
const MIN_TRAINING_MS = 3_600_000;
/** After a size found no capacity, the run keeps its current size for this long. */
const SIZE_PAUSE_MS = 12 * 3_600_000;
/** The time saved must be worth this many starts. */
const STARTS_WORTH = 4;
/** Minimum assumed cost of a start: instances, image, checkpoint. */
const MIN_START_MS = 900_000;

/** Whether the run's next attempt may have more instances: it is elastic, a larger size exists, and none was refused recently. */
export function mayGrow(record: RunRecord, now: EpochMs): boolean {
  const { policy, capacityOptionId, sizeFailedAt, desired, attempt } = record;
  if (policy.pendingSeconds === undefined || desired === 'stop' || attempt?.handOver?.why === 'preempted') return false;
  if (sizeFailedAt !== undefined && now - sizeFailedAt < SIZE_PAUSE_MS) return false;
  return largerOptionIds(record).length > 0 && parseCapacityOptionId(capacityOptionId).instances !== undefined;
}

/** Ids of the larger capacity options for the run's kind of capacity, largest first. */
export function largerOptionIds(record: Pick<RunRecord, 'policy' | 'capacityOptionId'>): string[] {
  const { options, at } = optionsOfKind(record);
  return options.slice(0, Math.max(0, at)).map(({ id }) => id);
}

/**
 * A text that says why it pays to end the attempt now for the reserved capacity; undefined when it does not pay. The rest of the run, at
 * equal speed per instance, must become shorter by the cost of four starts. If steps cannot be observed, this cannot be computed, and the
 * next attempt uses the capacity.
 */
export function growthPays(record: RunRecord, now: EpochMs): string | undefined {
  const { attempt, policy, reservation } = record;
  const { stepsPerHour } = attempt?.progress?.vitals ?? {};
  const step = attempt?.progress?.step;
  const trainingSince = attempt?.trainingSince ?? attempt?.trainingStartedAt;
  if (!reservation || !attempt || attempt.secondaryStatus !== 'Training' || trainingSince === undefined)
    return undefined;
  if (now - reservation.since < STEADY_MS || now - trainingSince < MIN_TRAINING_MS) return undefined;
  if (!stepsPerHour || step === null || step === undefined || policy.totalSteps === undefined) return undefined;
  const [from, to] = [instancesOn(record, attempt.capacityOptionId), instancesOn(record, reservation.capacityOptionId)];
  const leftMs = ((policy.totalSteps - step) / stepsPerHour) * 3_600_000;
  const savedMs = leftMs * (1 - from / to);
  const startMs = Math.max(MIN_START_MS, trainingSince - (attempt.acceptedAt ?? attempt.intentAt));
  if (savedMs < STARTS_WORTH * startMs) return undefined;
  return `asked to save and go on with ${to} instances instead of ${from}: about ${Math.round(savedMs / 360_000) / 10} h less`;
}
