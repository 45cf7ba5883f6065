import { keptPoolUntil, rebookPool } from '../accounting/spend';
import { type Move, move, NO_MOVE } from '../action';
import type { JobObservation, Observed } from '../observed';
import { type EpochMs, hasOpenPool, type RunRecord } from '../record';
import { event } from '../timeline';

/** Describe may lag behind the end of the pool, and the clocks may differ. */
const SLACK_MS = 180_000;
/** A pool that is still kept this long after it should have ended was prolonged, and is not followed any further. */
const GIVE_UP_MS = 86_400_000;

/** Whether the service is asked now how long it kept the warm pool of a run that is over. */
export const isPoolDue = (record: RunRecord, now: EpochMs): boolean =>
  hasOpenPool(record) && now >= (record.leftPool?.until ?? now) + SLACK_MS;

/**
 * Books what the warm pool of a run that is over has cost. Until then it was booked up to the end of its keep-alive period; another job may have
 * taken it over before, or somebody may have ended it.
 */
export function settlePool(record: RunRecord, { lastJob: job }: Observed, now: EpochMs): Move {
  const { leftPool: pool, attempt } = record;
  if (!pool || !job || !isPoolDue(record, now)) return NO_MOVE;
  const known = keptPoolUntil(pool, job);
  if (known === undefined) {
    const isAnswered = now >= pool.until + GIVE_UP_MS || saysNothing(job);
    return isAnswered ? move({ changes: { leftPool: { ...pool, isFinal: true } } }) : NO_MOVE;
  }
  const changes = rebookPool(record, pool, known);
  const isAsBooked = Math.abs(pool.until - known) < 1000;
  const text = `the warm pool of ${attempt?.jobName} had ended after ${Math.round((known - pool.since) / 1000)} s`;
  return move({ changes, events: isAsBooked ? [] : [event(now, 'warm-pool-ended', text)] });
}

/** The job was deleted, or its name is somebody else's now, or it has no warm pool: what was booked stands. */
const saysNothing = (job: JobObservation): boolean =>
  job.kind === 'absent' || (job.kind === 'present' && (job.identity === 'foreign' || !job.warmPool));
