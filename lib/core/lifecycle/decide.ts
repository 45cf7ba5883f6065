import { LIVE_JOB_STATUSES } from '../catalog/job-statuses';
import { addUsd, warmPoolUsd } from './accounting/spend';
import { type Action, event, type Move, NO_MOVE } from './action';
import { STILL_WRITES, writesStill } from './health/gone';
import { isEqual } from './health/observation-schedule';
import type { Observed, Situation } from './observed';
import { failRun, stopRun } from './phases/end-run';
import { finishAttempt, reused, vanished } from './phases/finish';
import { CONFIRM_ABSENCE_MS, endUncreated, intendAttempt, isInDoubt, SETTLE_MS, settleIntent } from './phases/launch';
import { settleEarlierPools, settlePool } from './phases/settle-pool';
import { missing, undescribed } from './phases/undescribed';
import { waitInQueue } from './phases/wait';
import { watchJob } from './phases/watch';
import {
  type Attempt,
  type EpochMs,
  isOver,
  isWaiting,
  liveAttempt,
  type Notice,
  type PresentJob,
  type RunRecord,
} from './record';

/** A start whose uploads are not confirmed within this time is abandoned. */
const CONFIRM_WITHIN_MS = 3_600_000;
/** Notices that wait while none can be published; the timeline has all of them. */
const MAX_OUTBOX = 50;
/** Ids of alerts that a record keeps. */
const MAX_ALERTS = 500;
/** A job that is being deleted is watched until Describe does not return it any more. */
const WATCHED: readonly string[] = [...LIVE_JOB_STATUSES, 'Deleting'];
/** Two answers of the service may round the CreationTime of the same job differently by up to this much. */
const SAME_JOB_MS = 1000;

/**
 * Decides what to do about one run, given its stored state (`record`) and what was just observed (`observed`). Pure: the same arguments
 * give the same actions, and once they have been carried out, the same observation gives none.
 *
 * `save` comes first and must succeed (condition on `previousVersion`) before the other actions. Every effect can be derived again from the
 * record and a new observation, so the caller may crash between any two of them.
 */
export function decide(record: RunRecord, observed: Observed, now: EpochMs): Action[] {
  const wanted = isOver(record)
    ? settlePool(record, observed, now)
    : bookWarmPool(record, chooseMove(record, observed, now));
  return toActions(record, wanted, observed);
}

/** A run that has ended will not take over a warm pool: the pool that its last job left is billed until it expires. */
function bookWarmPool(record: RunRecord, wanted: Move): Move {
  const { state = record.state } = wanted.changes;
  if (!isOver({ state })) return wanted;
  const { warmPool: leftPool, spentUsd: before } = { ...record, ...wanted.changes };
  if (!leftPool) return wanted;
  const spentUsd = addUsd(before, warmPoolUsd(leftPool, leftPool.until));
  return { ...wanted, changes: { ...wanted.changes, spentUsd, warmPool: undefined, leftPool } };
}

function chooseMove(record: RunRecord, observed: Observed, now: EpochMs): Move {
  const attempt = liveAttempt(record);
  if (attempt) return moveAttempt({ record, attempt, observed, now });
  if (record.desired === 'stop') return stopRun('stopped before the next attempt started', now);
  if (!record.confirmed) return unconfirmed(record, now);
  if (!record.admitted) return waitInQueue(record, observed, now);
  const pools = settleEarlierPools(record, observed, now);
  const settled = { ...record, ...pools.changes };
  const next = isWaiting(record, now) ? NO_MOVE : intendAttempt(settled, observed, now);
  return { ...next, changes: { ...pools.changes, ...next.changes }, events: [...pools.events, ...next.events] };
}

function moveAttempt(situation: Situation): Move {
  const { attempt, observed } = situation;
  const { job } = observed;
  if (attempt.phase === 'intent') return moveIntent(situation);
  if (job.kind === 'absent') return moveAbsent(situation);
  if (job.kind === 'unreadable') return undescribed(situation, job.error);
  if (job.kind !== 'present') return NO_MOVE;
  if (!isSameJob(attempt, job)) return reused({ ...situation, job });
  return WATCHED.includes(job.status) ? watchJob({ ...situation, job }) : finishAttempt({ ...situation, job });
}

function moveIntent(situation: Situation): Move {
  const { record, attempt, observed, now } = situation;
  const { create } = observed;
  // Nothing needs to be described where no call can have made a job.
  const isKnown = observed.job.kind !== 'unreadable' || isInDoubt(attempt);
  const job = isKnown ? observed.job : ({ kind: 'absent' } as const);
  if (job.kind === 'unreadable' && create?.kind !== 'accepted') return undescribed(situation, job.error);
  const holds = record.desired === 'run' && (isWaiting(record, now) || !record.admitted);
  if (holds && job.kind === 'absent' && create === undefined)
    return record.admitted ? NO_MOVE : endOpen(record, attempt, waitInQueue(record, observed, now), now);
  return settleIntent({ ...situation, observed: { ...observed, job } });
}

/** A run that fails in the queue also ends its attempt, for which no job exists. */
function endOpen(record: RunRecord, attempt: Attempt, wanted: Move, now: EpochMs): Move {
  return wanted.changes.state === 'failed' ? endUncreated(record, attempt, wanted, now) : wanted;
}

function moveAbsent(situation: Situation): Move {
  const { attempt, now } = situation;
  const isFresh = now - (attempt.acceptedAt ?? attempt.intentAt) < SETTLE_MS && attempt.status === '';
  if (isFresh) return NO_MOVE;
  if (attempt.absentSince === undefined) return missing(situation);
  if (writesStill(situation)) return undescribed(situation, STILL_WRITES);
  return now - attempt.absentSince < CONFIRM_ABSENCE_MS ? NO_MOVE : vanished(situation);
}

const isSameJob = (attempt: Attempt, job: PresentJob): boolean =>
  attempt.jobCreatedAt === undefined || Math.abs(attempt.jobCreatedAt - job.createdAt) <= SAME_JOB_MS;

function unconfirmed(record: RunRecord, now: EpochMs): Move {
  if (now - record.queuedAt < CONFIRM_WITHIN_MS) return NO_MOVE;
  return failRun(record, now, { why: 'the uploads of this start were never confirmed', runbook: 'upload' });
}

/** One save if anything changed, then the calls, then the notices in the outbox. */
function toActions(record: RunRecord, wanted: Move, observed: Observed): Action[] {
  const fresh = wanted.notices.filter((n) => !record.alerts.includes(n.id));
  const outbox = [...record.outbox.filter((n) => !observed.published.includes(n.id)), ...fresh].slice(-MAX_OUTBOX);
  const changes: Partial<RunRecord> = {
    ...wanted.changes,
    ...(outbox.length !== record.outbox.length || fresh.length > 0 ? { outbox } : {}),
    ...(fresh.length > 0 && { alerts: [...record.alerts, ...fresh.map((n) => n.id)].slice(-MAX_ALERTS) }),
  };
  const events = [...wanted.events, ...fresh.map(noticeLine)];
  const others = [...wanted.effects, ...outbox.map(notifyAction)];
  if (events.length === 0 && !differs(record, changes)) return others;
  const next: RunRecord = { ...record, ...changes, version: record.version + 1 };
  return [{ do: 'save', record: next, previousVersion: record.version, events }, ...others];
}

/** The timeline records when each notice was decided. */
const noticeLine = ({ id, at, text, runbook }: Notice) => event(at, 'notice', text, { notice: id, runbook });

const notifyAction = (notice: Notice): Action => ({ do: 'notify', notice });

function differs(record: RunRecord, changes: Partial<RunRecord>): boolean {
  return Object.entries(changes).some(([key, value]) => !isEqual(record[key as keyof RunRecord], value));
}
