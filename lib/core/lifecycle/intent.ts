import { keptPool, rebookPool } from './accounting/spend';
import { changeAttempt, event, type TimelineEvent } from './action';
import { AS_WRITTEN, largestOptionId } from './capacity-options';
import { type EpochMs, freshBudgets, type HandOver, isOver, liveAttempt, type RunRecord } from './record';

/** A person's request, applied as a new version of the record. */
export interface IntentChange {
  record: RunRecord;
  events: TimelineEvent[];
}

/** What is known about a run when it is created; `tags` are from the run file and from the person who started the run. */
export type NewRun = Pick<
  RunRecord,
  'runId' | 'name' | 'team' | 'environment' | 'kind' | 'configHash' | 'priority' | 'after' | 'policy'
> &
  Pick<RunRecord, 'tags' | 'note' | 'requestId' | 'notBefore'>;

/** Creates the record of a run that waits for its uploads. */
export function newRun(run: NewRun, now: EpochMs): RunRecord {
  return {
    ...run,
    version: 1,
    createdAt: now,
    queuedAt: now,
    state: 'submitting',
    desired: 'run',
    reason: 'waiting for its uploads',
    confirmed: false,
    admitted: false,
    budgets: freshBudgets(),
    capacityOptionId: AS_WRITTEN,
    committed: null,
    badCheckpoints: [],
    spentUsd: 0,
    alerts: [],
    outbox: [],
  };
}

/** The uploads are complete: the run joins the queue. Undefined when it already has. */
export function confirmRun(record: RunRecord, now: EpochMs): IntentChange | undefined {
  if (record.confirmed || isOver(record)) return undefined;
  // A run joins the queue no earlier than its `notBefore`.
  const queuedAt = Math.max(now, record.notBefore ?? now);
  const next: RunRecord = {
    ...record,
    confirmed: true,
    queuedAt,
    state: 'queued',
    reason: queuedAt > now ? `waiting until ${new Date(queuedAt).toISOString()}` : 'waiting in the queue',
  };
  return changed(next, event(now, 'run-confirmed', 'uploads confirmed; joined the queue'));
}

/**
 * The same start again after the run has ended without its uploads: it waits for them once more. Undefined for any other run.
 * @param notBefore earliest time of its first attempt; undefined = as soon as there is capacity in the queue
 */
export function repeatStart(record: RunRecord, now: EpochMs, notBefore?: EpochMs): IntentChange | undefined {
  if (record.confirmed || !isOver(record)) return undefined;
  const { state, desired, reason, alerts } = newRun(record, now);
  const next = {
    ...record,
    state,
    desired,
    reason,
    alerts,
    queuedAt: now,
    notBefore,
    endedAt: undefined,
    filesDeletedAt: undefined,
  };
  return changed(next, event(now, 'run-intended', 'the same start was asked again'));
}

/** Requests that the run stops. Undefined when there is nothing left to stop. */
export function askStop(record: RunRecord, why: string, now: EpochMs): IntentChange | undefined {
  if (isOver(record) || record.desired === 'stop') return undefined;
  const next: RunRecord = { ...record, desired: 'stop', reason: why };
  return changed(next, event(now, 'stop-asked', why));
}

/** Whether the run has anything to continue: it is not completed, its code was uploaded, and its files were not deleted. */
export const isResumable = ({ state, confirmed, filesDeletedAt }: RunRecord): boolean =>
  state !== 'completed' && confirmed && filesDeletedAt === undefined;

/**
 * Requests that the run continues. If its job is still stopping, the next attempt follows it. A run that had ended joins the queue again
 * with fresh budgets, because a person has looked at it. Undefined when it is already running, or is not resumable.
 */
export function askResume(record: RunRecord, now: EpochMs): IntentChange | undefined {
  if (!isResumable(record)) return undefined;
  if (!isOver(record)) {
    if (record.desired === 'run') return undefined;
    const { stop, handOver } = liveAttempt(record) ?? {};
    const reason = (stop ?? handOver)?.text ?? 'resumed while it was being stopped';
    return changed({ ...record, desired: 'run', reason }, event(now, 'resume-asked', 'resume asked while stopping'));
  }
  const next: RunRecord = {
    ...record,
    ...poolToTakeOver(record),
    desired: 'run',
    state: 'queued',
    reason: 'resumed; waiting in the queue',
    admitted: false,
    ...(record.policy.pendingSeconds !== undefined && {
      capacityOptionId: largestOptionId(record),
      reservation: undefined,
    }),
    queuedAt: now,
    budgets: freshBudgets(),
    notBefore: undefined,
    endedAt: undefined,
    alerts: [],
  };
  return changed(next, event(now, 'resume-asked', 'resume asked; budgets are reset', { from: record.state }));
}

/** The next attempt may take over the warm pool that the run left, so its booked cost is taken out of `spentUsd` again. */
function poolToTakeOver(record: RunRecord): Partial<RunRecord> {
  const { leftPool } = record;
  if (!leftPool) return {};
  const { spentUsd } = rebookPool(record, leftPool, leftPool.since);
  return { spentUsd, warmPool: leftPool, leftPool: undefined };
}

/**
 * Ends the warm pool of the last attempt at `until`, because it was released or another job took it over. Undefined when the run has left
 * no pool, or when its booked end is later by less than a second, the unit in which the service counts. The service is asked later how long
 * it kept the pool: the clock of the release may differ from its own.
 */
export function endPool(record: RunRecord, until: EpochMs, line: TimelineEvent): IntentChange | undefined {
  const pool = keptPool(record);
  if (!pool || pool.until - until < 1000) return undefined;
  const ended = { ...pool, until };
  const changes = isOver(record) ? { ...rebookPool(record, pool, until), leftPool: ended } : { warmPool: ended };
  return changed({ ...record, ...changes }, line);
}

/** The queue admits the run; for an elastic run, with the largest capacity option that fits the free capacity. */
export function admitRun(
  record: RunRecord,
  why: string,
  now: EpochMs,
  capacityOptionId = record.capacityOptionId,
): IntentChange {
  const isOpen = record.attempt?.phase === 'intent';
  const next: RunRecord = {
    ...record,
    ...(isOpen && changeAttempt(record, { capacityOptionId })),
    admitted: true,
    admittedAt: now,
    attemptsAtAdmission: (record.attempt?.number ?? 0) - (isOpen ? 1 : 0),
    state: 'submitting',
    reason: why,
    capacityOptionId,
  };
  return changed(
    next,
    event(now, 'run-admitted', why, capacityOptionId === record.capacityOptionId ? {} : { rung: capacityOptionId }),
  );
}

/** The queue asks the live job to save and exit. Undefined when there is no live job, or when it has already been asked. */
export function askHandOver(record: RunRecord, wanted: Omit<HandOver, 'sentAt'>): IntentChange | undefined {
  const attempt = liveAttempt(record);
  if (attempt?.phase !== 'created' || attempt.stop || attempt.handOver || record.desired === 'stop') return undefined;
  const next = { ...record, ...changeAttempt(record, { handOver: wanted }), reason: wanted.text };
  return changed(next, event(wanted.at, 'hand-over-asked', wanted.text, { why: wanted.why }));
}

/** Its files are about to be deleted, so it cannot be resumed. Undefined when that was recorded before. */
export function forgetFiles(record: RunRecord, now: EpochMs): IntentChange | undefined {
  if (record.filesDeletedAt !== undefined || !isOver(record)) return undefined;
  const text = `its files were deleted for team ${record.team}`;
  return changed({ ...record, filesDeletedAt: now }, event(now, 'files-deleted', text));
}

/** Replaces a person's note on the run. Undefined when the text is the same. */
export function writeNote(record: RunRecord, note: string, now: EpochMs): IntentChange | undefined {
  if (record.note === note) return undefined;
  return changed({ ...record, note }, event(now, 'note-written', note));
}

/** A timeline event for an action that a person requested. */
export const noteEvent = (record: RunRecord, what: string, text: string, now: EpochMs): IntentChange =>
  changed(record, event(now, what, text));

const changed = (record: RunRecord, line: TimelineEvent): IntentChange => ({
  record: { ...record, version: record.version + 1 },
  events: [line],
});
