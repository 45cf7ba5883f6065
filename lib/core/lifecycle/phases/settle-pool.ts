import { addUsd, changedPoolUsd, endedUsd, keptPoolUntil, rebookPool } from '../accounting/spend';
import { event, type Move, move, NO_MOVE, type TimelineEvent } from '../action';
import type { JobObservation, Observed } from '../observed';
import { type EarlierPool, type EpochMs, isOver, type RunRecord, type WarmPool } from '../record';

/** Describe may lag behind the end of the pool, and the clocks may differ. */
const SLACK_MS = 180_000;
/** A pool that is still kept this long after its expected end was prolonged; it is not tracked any further. */
const GIVE_UP_MS = 86_400_000;

/** The run is over, and the service has not yet reported how long it kept the warm pools of its jobs. */
const hasOpenPool = (record: RunRecord): boolean => isOver(record) && openPools(record).length > 0;

const openPools = ({ leftPool, earlierPools = [] }: RunRecord): readonly WarmPool[] =>
  leftPool && !leftPool.isFinal ? [...earlierPools, leftPool] : earlierPools;

/** The pool is the only thing left to do for the run: no notice waits to be published. */
export const waitsForPoolAlone = (record: RunRecord): boolean => hasOpenPool(record) && record.outbox.length === 0;

/** Whether it is time to ask the service how long it kept the warm pools of a finished run. */
export const isPoolDue = (record: RunRecord, now: EpochMs): boolean =>
  hasOpenPool(record) && now >= Math.max(...openPools(record).map(({ until }) => until)) + SLACK_MS;

/**
 * Books the cost of the warm pools of a finished run. Until then the last one is booked up to the end of its keep-alive period, but another
 * job may have taken it over earlier, or a person may have released it.
 */
export function settlePool(record: RunRecord, observed: Observed, now: EpochMs): Move {
  if (!isPoolDue(record, now)) return NO_MOVE;
  const earlier = settleEarlierPools(record, observed, now);
  const last = settleLastPool({ ...record, ...earlier.changes }, observed, now);
  return move({
    changes: { ...earlier.changes, ...last.changes },
    events: [...earlier.events, ...last.events],
  });
}

/** What changes in the record, and the lines of the timeline about it. */
type Settled = Pick<Move, 'changes' | 'events'>;

function settleLastPool(record: RunRecord, { lastJob: job }: Observed, now: EpochMs): Settled {
  const { leftPool: pool } = record;
  if (!pool || pool.isFinal || !job) return { changes: {}, events: [] };
  const known = keptPoolUntil(pool, job);
  if (known === undefined) {
    const changes = isAnswered(pool, job, now) ? { leftPool: { ...pool, isFinal: true } } : {};
    return { changes, events: [] };
  }
  const changes = rebookPool(record, pool, known);
  return { changes, events: poolEvents(pool.attempt.jobName, { ...pool, bookedUntil: pool.until }, known, now) };
}

/** Books the cost of the warm pools of earlier attempts of which the service has reported how long it kept them. */
export function settleEarlierPools(record: RunRecord, { earlierJobs = {} }: Observed, now: EpochMs): Settled {
  const { earlierPools = [] } = record;
  const open: EarlierPool[] = [];
  const events: TimelineEvent[] = [];
  let { spentUsd } = record;
  for (const pool of earlierPools) {
    const { attempt, bookedUntil } = pool;
    const job = earlierJobs[attempt.number];
    const known = job && (keptPoolUntil(pool, job) ?? prolongedUntil(pool, job, now));
    if (known !== undefined) {
      spentUsd = addUsd(spentUsd, changedPoolUsd(pool, bookedUntil, known));
      events.push(...poolEvents(attempt.jobName, pool, known, now));
    } else if (!job || !isAnswered(pool, job, now)) open.push(pool);
  }
  if (open.length === earlierPools.length) return { changes: {}, events };
  return { changes: { spentUsd, earlierPools: open.length > 0 ? open : undefined }, events };
}

/** A pool that is still kept long after its expected end was not taken over before that: it is booked up to that end. */
const prolongedUntil = ({ until }: WarmPool, job: JobObservation, now: EpochMs): EpochMs | undefined =>
  now >= until + GIVE_UP_MS && job.kind === 'present' && job.warmPool?.isKept ? until : undefined;

/** Nothing more can be learned about the pool from this answer, or from waiting longer. */
const isAnswered = (pool: WarmPool, job: JobObservation, now: EpochMs): boolean =>
  now >= pool.until + GIVE_UP_MS || isUnknown(job);

/** A line about a pool that ended at another time than it was booked. */
const poolEvents = (
  jobName: string,
  { since, bookedUntil }: Pick<EarlierPool, 'since' | 'bookedUntil'>,
  known: EpochMs,
  now: EpochMs,
): TimelineEvent[] =>
  Math.abs(bookedUntil - known) < 1000 ? [] : [poolEnded(jobName, Math.round((known - since) / 1000), now)];

/** The job was deleted, another job has its name, or it has no warm pool: the booked cost stays as it is. */
const isUnknown = (job: JobObservation): boolean =>
  job.kind === 'absent' || (job.kind === 'present' && (job.identity === 'foreign' || !job.warmPool));

/** Timeline event for a pool that ended earlier or later than it was booked. */
export const poolEnded = (jobName: string, seconds: number, now: EpochMs): TimelineEvent =>
  event(now, 'warm-pool-ended', `the warm pool of ${jobName} had ended after ${seconds} s`);

/** The warm pool of the last attempt may have ended before this attempt asks for it: another job took it over, or it was released. */
export function poolAsSeen({ warmPool }: RunRecord, { lastJob }: Observed): Partial<RunRecord> {
  if (!warmPool || !lastJob) return {};
  const until = keptPoolUntil(warmPool, lastJob);
  return until === undefined ? {} : { warmPool: { ...warmPool, until, isFinal: true } };
}

/**
 * The job takes over the warm pool of the previous one: until the job was created, the pool was billed on its own. If several pools match,
 * AWS does not document which of them a job gets, so the service is asked later how long this one was kept.
 */
export function takenPool(record: RunRecord, createdAt: EpochMs): Partial<RunRecord> {
  const { warmPool: pool, earlierPools = [] } = record;
  if (!pool) return {};
  const booked = { spentUsd: endedUsd(record, createdAt), warmPool: undefined };
  if (pool.isFinal) return booked;
  const bookedUntil = Math.max(pool.since, Math.min(createdAt, pool.until));
  return { ...booked, earlierPools: [...earlierPools, { ...pool, bookedUntil }] };
}
