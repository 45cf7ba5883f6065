import { keptPoolUntil, rebookPool } from '../accounting/spend';
import { type Move, move, NO_MOVE, type TimelineEvent } from '../action';
import type { JobObservation, Observed } from '../observed';
import { type EpochMs, isOver, type RunRecord } from '../record';
import { event } from '../timeline';

/** Describe may lag behind the end of the pool, and the clocks may differ. */
const SLACK_MS = 180_000;
/** A pool that is still kept this long after it should have ended was prolonged, and is not followed any further. */
const GIVE_UP_MS = 86_400_000;

/** The run is over, and the service has not said yet how long it kept the warm pool of the last job. */
export const hasOpenPool = (record: RunRecord): boolean =>
  isOver(record) && record.leftPool !== undefined && !record.leftPool.isFinal;

/** Nothing else is left to do for the run: no notice waits to be published. */
export const waitsForPoolAlone = (record: RunRecord): boolean => hasOpenPool(record) && record.outbox.length === 0;

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
  const seconds = Math.round((known - pool.since) / 1000);
  return move({ changes, events: isAsBooked ? [] : [poolEnded(attempt?.jobName ?? '', seconds, now)] });
}

/** The job was deleted, or its name is somebody else's now, or it has no warm pool: what was booked stands. */
const saysNothing = (job: JobObservation): boolean =>
  job.kind === 'absent' || (job.kind === 'present' && (job.identity === 'foreign' || !job.warmPool));

/** The line of a timeline about a pool that did not last as long as it was booked. */
export const poolEnded = (jobName: string, seconds: number, now: EpochMs): TimelineEvent =>
  event(now, 'warm-pool-ended', `the warm pool of ${jobName} had ended after ${seconds} s`);
