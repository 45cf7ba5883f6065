import { keptPoolUntil, rebookPool } from '../accounting/spend';
import { type Move, move, NO_MOVE, type TimelineEvent } from '../action';
import type { JobObservation, Observed } from '../observed';
import { type EpochMs, isOver, type RunRecord } from '../record';
import { event } from '../timeline';

/** Describe may lag behind the end of the pool, and the clocks may differ. */
const SLACK_MS = 180_000;
/** A pool that is still kept this long after its expected end was prolonged; it is not tracked any further. */
const GIVE_UP_MS = 86_400_000;

/** The run is over, and the service has not yet reported how long it kept the warm pool of the last job. */
export const hasOpenPool = (record: RunRecord): boolean =>
  isOver(record) && record.leftPool !== undefined && !record.leftPool.isFinal;

/** The pool is the only thing left to do for the run: no notice waits to be published. */
export const waitsForPoolAlone = (record: RunRecord): boolean => hasOpenPool(record) && record.outbox.length === 0;

/** Whether it is time to ask the service how long it kept the warm pool of a finished run. */
export const isPoolDue = (record: RunRecord, now: EpochMs): boolean =>
  hasOpenPool(record) && now >= (record.leftPool?.until ?? now) + SLACK_MS;

/**
 * Books the cost of the warm pool of a finished run. Until then it is booked up to the end of its keep-alive period, but another job may
 * have taken it over earlier, or a person may have released it.
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
  const seconds = Math.round((known - pool.since) / 1000);
  return move({ changes, events: isAsBooked ? [] : [poolEnded(attempt?.jobName ?? '', seconds, now)] });
}

/** The job was deleted, another job has its name, or it has no warm pool: the booked cost stays as it is. */
const saysNothing = (job: JobObservation): boolean =>
  job.kind === 'absent' || (job.kind === 'present' && (job.identity === 'foreign' || !job.warmPool));

/** Timeline event for a pool that ended earlier or later than it was booked. */
export const poolEnded = (jobName: string, seconds: number, now: EpochMs): TimelineEvent =>
  event(now, 'warm-pool-ended', `the warm pool of ${jobName} had ended after ${seconds} s`);
