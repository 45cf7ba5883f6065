import { type Evidence, type Move, move } from './action';
import { judge } from './budgets';
import { classify, type Verdict } from './classify';
import { completeRun, failRun, stopRun } from './end-run';
import { goneAttempt } from './gone';
import { asHandOver, backToQueue } from './hand-over';
import { nextProgress } from './hang';
import { rungAfterCapacityFailure, unusableRungs } from './ladder';
import type { Observed, PresentJob } from './observed';
import { type Attempt, type Checkpoint, checkpointKey, type EpochMs, type RunRecord } from './record';
import { blamedCheckpoint, newestCommitted, newestUsable } from './resume';
import { rollBack } from './rollback';
import { addUsd, attemptCostUsd, billedShare, leftPool } from './spend';
import { stepEvents, stepsOf, unseenSteps } from './step-times';
import { event, notice } from './timeline';
import { commitEvent, madeProgress } from './watch';

/** A job that is over: book it, judge it, and say what comes next. */
export const finishAttempt = (
  record: RunRecord,
  attempt: Attempt,
  job: PresentJob,
  observed: Observed,
  now: EpochMs,
): Move => withSteps(attempt, judgeEnd(record, attempt, job, observed, now), now);

/** The timeline gets the last steps of an attempt that ended before what follows from its end. */
function withSteps(before: Attempt, ending: Move, now: EpochMs): Move {
  const ended = ending.changes.attempt;
  if (ended?.phase !== 'ended') return ending;
  return {
    ...ending,
    events: [...stepEvents(before, ended, now), ...unseenSteps(before, ended, now), ...ending.events],
  };
}

function judgeEnd(record: RunRecord, attempt: Attempt, job: PresentJob, observed: Observed, now: EpochMs): Move {
  if (job.status === 'Completed') return complete(record, attempt, job, observed, now);
  // A run that ends here does not depend on what was committed; a stop must not wait for a listing.
  const progress = madeProgress(record, attempt, observed) ?? (record.desired === 'stop' ? false : undefined);
  if (progress === undefined) return waitForListing(record, attempt, observed, now);
  const verdict = asHandOver(
    attempt,
    classify(job, attempt, record.policy.pendingSeconds ?? record.policy.capacityBudgetSeconds),
  );
  const evidence = evidenceOf(job, verdict, progress);
  const ended = endAttempt(record, attempt, job, verdict.failureClass, verdict.reason, observed, now);
  if (verdict.failureClass === 'outside-stop') {
    const said = notice(record, 'outside-stop', attempt.jobName, verdict.reason, 'outside-stop', now);
    const stopped = withChanges({ ...ended, desired: 'stop' }, stopRun(verdict.reason, now, evidence));
    return { ...withCommit(record, ended, observed, stopped, now), notices: [said] };
  }
  if (record.desired === 'stop') {
    const why = attempt.stop?.why === 'user' ? attempt.stop.text : `stopped as asked; ${verdict.reason}`;
    return withCommit(record, ended, observed, withChanges(ended, stopRun(why, now, evidence)), now);
  }
  if (attempt.stop?.why === 'spend') {
    const said = notice(record, 'spend-cap', attempt.jobName, attempt.stop.text, 'spend', now);
    const stopped = withChanges(ended, stopRun(attempt.stop.text, now, evidence));
    return { ...withCommit(record, ended, observed, stopped, now), notices: [said] };
  }
  const next = goOn(record, { ...attempt, ...ended.attempt }, verdict, ended, observed, progress, evidence, now);
  return withCommit(record, ended, observed, next, now);
}

/** A commit that is first seen now, with the end of its attempt, is told before the end: the ledger counts its steps as kept. */
function withCommit(
  record: RunRecord,
  ended: Partial<RunRecord>,
  observed: Observed,
  wanted: Move,
  now: EpochMs,
): Move {
  const committed = wanted.changes.committed ?? ended.committed;
  if (!committed || committed.step <= (record.committed?.step ?? -1)) return wanted;
  const endedAt = Math.min(now, ended.attempt?.endedAt ?? now);
  return { ...wanted, events: [commitEvent(committed, observed, endedAt), ...wanted.events] };
}

function complete(record: RunRecord, attempt: Attempt, job: PresentJob, observed: Observed, now: EpochMs): Move {
  const ended = endAttempt(record, attempt, job, 'completed', 'completed', observed, now);
  const completed = withChanges(ended, completeRun(record, now, { jobName: attempt.jobName, status: job.status }));
  return withCommit(record, ended, observed, completed, now);
}

/** Judging without the list of checkpoints would take progress for a crash loop. */
function waitForListing(record: RunRecord, attempt: Attempt, observed: Observed, now: EpochMs): Move {
  const { checkpoints } = observed;
  const why = checkpoints.kind === 'unreadable' ? checkpoints.error : 'they were not listed';
  const text = `${attempt.jobName} is over, but its checkpoints cannot be read: ${why}`;
  return move({ notices: [notice(record, 'checkpoints-unreadable', attempt.jobName, text, 'checkpoint', now)] });
}

function evidenceOf(job: PresentJob, verdict: Verdict, progress: boolean): Evidence {
  return {
    status: job.status,
    secondaryStatus: job.secondaryStatus,
    failureReason: job.failureReason.slice(0, 1024),
    failureClass: verdict.failureClass,
    signature: verdict.signature,
    ...(verdict.exitCode !== undefined && { exitCode: verdict.exitCode }),
    committedNew: progress,
  };
}

function endAttempt(
  record: RunRecord,
  attempt: Attempt,
  job: PresentJob,
  failureClass: Attempt['failureClass'],
  reason: string,
  observed: Observed,
  now: EpochMs,
): Partial<RunRecord> & { attempt: Attempt } {
  const trainingStartedAt = job.trainingStartedAt ?? attempt.trainingStartedAt;
  const endedAt = job.endedAt ?? now;
  const selected = job.selected ?? attempt.selected;
  const pauses = job.pauses ?? attempt.pauses;
  const billed = { ...attempt, trainingStartedAt, pauses, selected };
  const costUsd = attemptCostUsd(record, billed, endedAt, job.billableSeconds);
  const spotShare = billedShare(record, billed, endedAt, job.billableSeconds);
  const warmPool = leftPool(record, billed, job, endedAt);
  const beat = observed.heartbeat?.attempt === attempt.number ? observed.heartbeat.step : null;
  const progress = nextProgress(attempt, observed.heartbeat, now);
  const steps = stepsOf(progress);
  // A host that was lost could not send its last heartbeat; the metric is read from its log.
  const last = Math.max(job.lastStep ?? -1, beat ?? steps.last ?? -1);
  const ended: Attempt = {
    ...attempt,
    phase: 'ended',
    jobArn: job.arn,
    jobCreatedAt: attempt.jobCreatedAt ?? job.createdAt,
    status: job.status,
    secondaryStatus: job.secondaryStatus,
    trainingStartedAt,
    pauses,
    selected,
    progress,
    firstStep: attempt.firstStep ?? steps.first,
    lastStep: last >= 0 ? last : attempt.lastStep,
    endedAt,
    failureClass,
    reason,
    costUsd,
  };
  return {
    attempt: ended,
    committed: newestCommitted(record, observed),
    spentUsd: addUsd(record.spentUsd, costUsd),
    ...(spotShare !== undefined && { spotShare }),
    ...(warmPool && { warmPool }),
  };
}

const withChanges = (ended: Partial<RunRecord>, ending: Move): Move => ({
  ...ending,
  changes: { ...ended, ...ending.changes },
});

function goOn(
  record: RunRecord,
  attempt: Attempt,
  verdict: Verdict,
  ended: Partial<RunRecord>,
  observed: Observed,
  progress: boolean,
  evidence: Evidence,
  now: EpochMs,
): Move {
  // An attempt that a person stopped and resumed, or that was asked to leave, says nothing about the code.
  const hadCapacity = attempt.trainingStartedAt !== undefined;
  const trained = hadCapacity && attempt.stop?.why !== 'user' && !attempt.handOver;
  const blamed = verdict.failureClass === 'checkpoint' ? blamedCheckpoint(attempt, verdict, progress) : undefined;
  const triesOlderCheckpoint = blamed !== undefined && hasOlder(record, observed, blamed);
  const seen = { madeProgress: progress, trained, hadCapacity, triesOlderCheckpoint };
  const judgement = judge(record, verdict, seen, now);
  const { budgets, next } = judgement;
  const over = event(now, 'attempt-ended', `attempt ${attempt.number} ended: ${verdict.reason}`, {
    ...evidence,
    budgets,
  });
  if (next.kind === 'fail') {
    const failed = failRun(record, next.why, next.runbook, now, evidence);
    return { ...failed, changes: { ...ended, budgets, ...failed.changes }, events: [over, ...failed.events] };
  }
  const rollback = verdict.failureClass === 'loss' ? rollBack(record, attempt, verdict, observed, now) : undefined;
  const isCapacity = verdict.failureClass === 'capacity';
  const resumed = move({
    changes: {
      ...ended,
      budgets,
      state: 'resuming',
      reason: verdict.reason,
      notBefore: next.delaySeconds > 0 ? now + next.delaySeconds * 1000 : undefined,
      ...(isCapacity ? afterNoCapacity(record, observed, now) : largerNow(record)),
      ...(blamed && { badCheckpoints: [...record.badCheckpoints, checkpointKey(blamed)] }),
      ...rollback?.changes,
    },
    events: [over, ...(rollback?.events ?? [])],
    notices: judgement.alert
      ? [
          notice(
            record,
            'no-progress',
            attempt.jobName,
            `${judgement.alert}; not stopped, as progress cannot be seen`,
            'no-progress',
            now,
          ),
        ]
      : [],
  });
  return backToQueue(record, attempt, resumed, now);
}

/** The next rung; an elastic run remembers when a size found no instances. */
const afterNoCapacity = (record: RunRecord, observed: Observed, now: EpochMs): Partial<RunRecord> => ({
  rungId: rungAfterCapacityFailure(record, unusableRungs(observed)),
  ...(record.policy.pendingSeconds !== undefined && { sizeFailedAt: now, roomFor: undefined }),
});

/** The next attempt takes the room that the queue keeps for it. */
const largerNow = ({ roomFor }: RunRecord): Partial<RunRecord> =>
  roomFor ? { rungId: roomFor.rungId, roomFor: undefined } : {};

/** Whether a usable checkpoint is left beside the one that could not be read. */
function hasOlder(record: RunRecord, { checkpoints }: Observed, blamed: Checkpoint): boolean {
  if (checkpoints.kind !== 'listed') return false;
  const badCheckpoints = [...record.badCheckpoints, checkpointKey(blamed)];
  return newestUsable({ badCheckpoints }, checkpoints) !== undefined;
}

/** The job was there and is not any more: somebody deleted it. Its name is never used again; the next attempt has its own. */
export function vanished(record: RunRecord, attempt: Attempt, observed: Observed, now: EpochMs): Move {
  const progress = madeProgress(record, attempt, observed) ?? (record.desired === 'stop' ? false : undefined);
  if (progress === undefined) return waitForListing(record, attempt, observed, now);
  const reason = `${attempt.jobName} does not exist any more; somebody deleted it`;
  const verdict: Verdict = { failureClass: 'deleted', reason, signature: 'deleted' };
  const ended = goneAttempt(record, attempt, observed, reason, 'deleted', now);
  const next =
    record.desired === 'stop'
      ? withChanges(ended, stopRun(`stopped as asked; ${reason}`, now))
      : goOn(record, ended.attempt, verdict, ended, observed, progress, { jobArn: attempt.jobArn ?? null }, now);
  return withSteps(attempt, withCommit(record, ended, observed, next, now), now);
}

/** A job of our name that is not the one we made: its creation time differs, so the name was freed and taken again. What ours had is booked. */
export function reused(record: RunRecord, attempt: Attempt, job: PresentJob, observed: Observed, now: EpochMs): Move {
  const why = `the job named ${attempt.jobName} is not the one this run created; the name was deleted and taken again`;
  const ended = goneAttempt(record, attempt, observed, why, 'collision', now);
  const failed = failRun(record, why, 'collision', now, {
    arn: job.arn,
    createdAt: job.createdAt,
    ours: attempt.jobCreatedAt,
  });
  return withSteps(attempt, withCommit(record, ended, observed, withChanges(ended, failed), now), now);
}
