import { instancesOn, partsOfRung } from '../ladder';
import type { EpochMs, RunRecord } from '../record';

/** Room must have stood for this long before a job is asked to leave for it. */
const STEADY_MS = 1_800_000;
/** A job is left alone until it has trained this long. */
const LEAST_TRAINING_MS = 3_600_000;
/** After a size found no capacity the run stays at what it has for this long. */
export const SIZE_PAUSE_MS = 12 * 3_600_000;
/** What is saved must be worth so many starts. */
const STARTS_WORTH = 4;
/** A start costs at least this much: instances, image, checkpoint. */
const LEAST_START_MS = 900_000;

/** Whether the run's next attempt may have more instances: it has sizes, a larger one is left, and none was refused lately. */
export function mayGrow(record: RunRecord, now: EpochMs): boolean {
  const { policy, rungId, sizeFailedAt, desired, attempt } = record;
  if (policy.pendingSeconds === undefined || desired === 'stop' || attempt?.handOver?.why === 'preempted') return false;
  if (sizeFailedAt !== undefined && now - sizeFailedAt < SIZE_PAUSE_MS) return false;
  return largerRungs(record).length > 0 && partsOfRung(rungId).instances !== undefined;
}

/** Ids of the larger rungs of the run's kind of capacity, largest first. */
export function largerRungs({ policy: { ladder }, rungId }: Pick<RunRecord, 'policy' | 'rungId'>): string[] {
  const at = ladder.findIndex((rung) => rung.id === rungId);
  const { kind } = partsOfRung(rungId);
  return ladder.flatMap((rung, i) => (i < at && partsOfRung(rung.id).kind === kind ? [rung.id] : []));
}

/**
 * Whether it pays to end the attempt now for the room that is kept, in words; undefined while it does not. The time that the rest of the
 * run would be shorter, at equal speed an instance, must be worth four starts; without visible steps nobody knows, and the room is taken
 * at the next attempt.
 */
export function growthPays(record: RunRecord, now: EpochMs): string | undefined {
  const { attempt, policy, roomFor } = record;
  const { stepsPerHour } = attempt?.progress?.vitals ?? {};
  const step = attempt?.progress?.step;
  const trainingSince = attempt?.trainingSince ?? attempt?.trainingStartedAt;
  if (!roomFor || !attempt || attempt.secondaryStatus !== 'Training' || trainingSince === undefined) return undefined;
  if (now - roomFor.since < STEADY_MS || now - trainingSince < LEAST_TRAINING_MS) return undefined;
  if (!stepsPerHour || step === null || step === undefined || policy.totalSteps === undefined) return undefined;
  const [from, to] = [instancesOn(record, attempt.rungId), instancesOn(record, roomFor.rungId)];
  const leftMs = ((policy.totalSteps - step) / stepsPerHour) * 3_600_000;
  const savedMs = leftMs * (1 - from / to);
  const startMs = Math.max(LEAST_START_MS, trainingSince - (attempt.acceptedAt ?? attempt.intentAt));
  if (savedMs < STARTS_WORTH * startMs) return undefined;
  return `asked to save and go on with ${to} instances instead of ${from}: about ${Math.round(savedMs / 360_000) / 10} h less`;
}
