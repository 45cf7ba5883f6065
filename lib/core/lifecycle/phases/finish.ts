import { addUsd, attemptCostUsd, billedShare, leftPool } from '../accounting/spend';
import { changeAttempt, type Evidence, event, type Move, move, notice } from '../action';
import { capacityCame, type Judgement, judge } from '../budgets';
import { findCapacityOption, instancesOn, optionAfterCapacityFailure, unusableOptionIds } from '../capacity-options';
import { classify, type Verdict } from '../classify';
import { goneAttempt, goneSince } from '../health/gone';
import { nextProgress } from '../health/hang';
import { stepEvents, stepsOf, unseenSteps } from '../health/step-times';
import type { EndedRecord, JobSituation, Observed, Situation } from '../observed';
import {
  type Attempt,
  type Checkpoint,
  checkpointKey,
  type EpochMs,
  type Notice,
  type PresentJob,
  type RunRecord,
} from '../record';
import { blamedCheckpoint, newestCommitted, newestUsable, rollBack } from '../resuming/resume';
import { completeRun, failRun, paceRestarts, stopRun } from './end-run';
import { asHandOver } from './hand-over';
import { backToQueue, returnsCapacity, unreadable } from './wait';
import { commitEvent, madeProgress } from './watch';

interface AttemptEnd {
  verdict: Verdict;
  /** Changes that the end makes to the record, whatever follows. */
  ended: EndedRecord;
  /** Whether the attempt committed anything new. */
  progress: boolean;
  evidence: Evidence;
}

/** Handles a job that is over: books its cost, classifies its end, and decides what follows. */
export const finishAttempt = (situation: JobSituation): Move => withSteps(situation, judgeEnd(situation));

/** Adds the last steps of an ended attempt to the timeline, before the events that follow from its end. */
function withSteps({ attempt, now }: Situation, ending: Move): Move {
  const ended = ending.changes.attempt;
  if (ended?.phase !== 'ended') return ending;
  return {
    ...ending,
    events: [...stepEvents(attempt, ended, now), ...unseenSteps(attempt, ended, now), ...ending.events],
  };
}

function judgeEnd(situation: JobSituation): Move {
  const { record, attempt, job } = situation;
  if (job.status === 'Completed') return complete(situation);
  const progress = knownProgress(situation);
  if (progress === undefined) return waitForListing(situation);
  const { pendingSeconds, capacityBudgetSeconds } = record.policy;
  // A spot job has no limit for its wait but maxWaitSeconds, whose end has a status of its own.
  const isSpot = findCapacityOption(record, attempt.capacityOptionId)?.usage === 'spot';
  const pendingLimit = isSpot ? undefined : (pendingSeconds ?? capacityBudgetSeconds);
  const verdict = asHandOver(attempt, classify(job, attempt, pendingLimit));
  const ended = endAttempt(situation, verdict);
  const evidence = evidenceOf(job, verdict, progress);
  const end = { verdict, ended, progress, evidence };
  return withCommit(situation, ended, stopAfter(situation, end) ?? resumeOrFail(situation, end));
}

/** When the run ends here, the result does not depend on what was committed, and a stop must not wait for a listing of checkpoints. */
const knownProgress = (situation: Situation): boolean | undefined =>
  madeProgress(situation) ?? (situation.record.desired === 'stop' ? false : undefined);

/** Stops the run after this attempt, because a person requested it or the spend cap is reached. Otherwise undefined. */
function stopAfter({ record, attempt, now }: Situation, { verdict, ended, evidence }: AttemptEnd): Move | undefined {
  const { failureClass, reason } = verdict;
  const { jobName, stop } = attempt;
  if (failureClass === 'outside-stop') {
    const sent = notice(record, now, { alert: 'outside-stop', about: jobName, text: reason, runbook: 'outside-stop' });
    return { ...withChanges({ ...ended, desired: 'stop' }, stopRun(reason, now, evidence)), notices: [sent] };
  }
  if (record.desired === 'stop') {
    const why = stop?.why === 'user' ? stop.text : `stopped as asked; ${reason}`;
    return withChanges(ended, stopRun(why, now, evidence));
  }
  if (stop?.why !== 'spend') return undefined;
  const sent = notice(record, now, { alert: 'spend-cap', about: jobName, text: stop.text, runbook: 'spend' });
  return { ...withChanges(ended, stopRun(stop.text, now, evidence)), notices: [sent] };
}

/**
 * A commit that is first observed together with the end of its attempt is recorded before the end, so that the ledger counts its steps as
 * kept.
 */
function withCommit({ record, observed, now }: Situation, ended: EndedRecord, wanted: Move): Move {
  const committed = wanted.changes.committed ?? ended.committed;
  if (!committed || committed.step <= (record.committed?.step ?? -1)) return wanted;
  const endedAt = Math.min(now, ended.attempt.endedAt ?? now);
  return { ...wanted, events: [commitEvent(committed, observed, endedAt), ...wanted.events] };
}

function complete(situation: JobSituation): Move {
  const { record, attempt, job, now } = situation;
  const ended = endAttempt(situation, { failureClass: 'completed', reason: 'completed' });
  const evidence = { jobName: attempt.jobName, status: job.status };
  const completed = completeRun(record, now, evidence, ended.attempt.progress?.vitals?.endedEarly);
  return withCommit(situation, ended, withChanges(ended, completed));
}

/**
 * Without the list of checkpoints, an attempt that made progress could be judged as a crash loop. How the job ended is kept: it may be
 * deleted, or not be described any more, before they can be listed. It holds no instances, so that others may use its capacity after an
 * hour.
 */
function waitForListing({ record, attempt, observed, now }: Situation): Move {
  const over = observed.job.kind === 'present' ? observed.job : undefined;
  const absentSince = over ? undefined : goneSince({ attempt, observed, now });
  const endedAt = (over ? over.endedAt : attempt.absentSince) ?? now;
  const { checkpoints } = observed;
  const why = checkpoints.kind === 'unreadable' ? checkpoints.error : 'they were not listed';
  const text = `${attempt.jobName} is over, but its checkpoints cannot be read: ${why}`;
  return move({
    changes: {
      ...changeAttempt(record, { over, absentSince }),
      ...(returnsCapacity(endedAt, now) && { admitted: false }),
    },
    notices: [unreadable(record, { about: attempt.jobName, since: endedAt, text }, now)],
  });
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

/** The attempt after its job has ended, with its cost. */
function endAttempt(
  { record, attempt, job, observed, now }: JobSituation,
  { failureClass, reason }: Pick<Attempt, 'failureClass' | 'reason'>,
): EndedRecord {
  const endedAt = job.endedAt ?? now;
  const seen = {
    ...attempt,
    trainingStartedAt: job.trainingStartedAt ?? attempt.trainingStartedAt,
    pauses: job.pauses ?? attempt.pauses,
    selected: job.selected ?? attempt.selected,
  };
  const costUsd = attemptCostUsd(record, seen, endedAt, job.billableSeconds);
  const spotShare = billedShare(record, seen, endedAt, job.billableSeconds);
  const warmPool = leftPool(record, seen, job, endedAt);
  return {
    attempt: {
      ...seen,
      phase: 'ended',
      over: undefined,
      jobArn: job.arn,
      jobCreatedAt: attempt.jobCreatedAt ?? job.createdAt,
      status: job.status,
      secondaryStatus: job.secondaryStatus,
      ...lastSteps(attempt, job, observed, now),
      endedAt,
      failureClass,
      reason,
      costUsd,
    },
    committed: newestCommitted(record, observed),
    spentUsd: addUsd(record.spentUsd, costUsd),
    ...(seen.trainingStartedAt !== undefined && { budgets: capacityCame(record.budgets) }),
    ...(spotShare !== undefined && { spotShare }),
    ...(warmPool && { warmPool }),
  };
}

/** Last steps of an attempt that has ended. A lost host could not send its last heartbeat, so the metric from its log is used as well. */
function lastSteps(
  attempt: Attempt,
  job: PresentJob,
  { heartbeat }: Observed,
  now: EpochMs,
): Pick<Attempt, 'progress' | 'firstStep' | 'lastStep'> {
  const reported = heartbeat?.attempt === attempt.number ? heartbeat.step : null;
  const progress = nextProgress(attempt, heartbeat, now);
  const steps = stepsOf(progress);
  const last = Math.max(job.lastStep ?? -1, reported ?? steps.last ?? -1);
  return {
    progress,
    firstStep: attempt.firstStep ?? steps.first,
    lastStep: last >= 0 ? last : attempt.lastStep,
  };
}

const withChanges = (ended: Partial<RunRecord>, ending: Move): Move => ({
  ...ending,
  changes: { ...ended, ...ending.changes },
});

/** Starts another attempt or ends the run after a failure, depending on the run's budgets. */
function resumeOrFail(before: Situation, end: AttemptEnd): Move {
  const { record, now } = before;
  const { verdict, ended, progress, evidence } = end;
  const situation = { ...before, attempt: ended.attempt };
  const { attempt } = situation;
  const blamed = verdict.failureClass === 'checkpoint' ? blamedCheckpoint(attempt, verdict, progress) : undefined;
  const judgement = judgeFailure(situation, end, blamed);
  const { budgets, next } = judgement;
  const details = { ...evidence, budgets };
  const over = event(now, 'attempt-ended', `attempt ${attempt.number} ended: ${verdict.reason}`, details);
  if (next.kind === 'fail') {
    const failed = failRun(record, now, { why: next.why, runbook: next.runbook, evidence });
    return { ...failed, changes: { ...ended, budgets, ...failed.changes }, events: [over, ...failed.events] };
  }
  const rollback = verdict.failureClass === 'loss' ? rollBack(situation, verdict) : undefined;
  const paced = paceRestarts(record, end, now + next.delaySeconds * 1000, now);
  const resumed = move({
    changes: {
      ...ended,
      budgets,
      state: 'resuming',
      reason: verdict.reason,
      ...paced.changes,
      ...(verdict.failureClass === 'capacity' ? afterNoCapacity(situation) : largerNow(record)),
      ...(blamed && { badCheckpoints: [...record.badCheckpoints, checkpointKey(blamed)] }),
      ...rollback?.changes,
    },
    events: [over, ...(rollback?.events ?? [])],
    notices: [...noProgress(situation, judgement.alert), ...paced.notices],
  });
  return backToQueue(record, attempt, resumed, now);
}

/** An attempt that a person stopped and resumed, or that was asked to exit, is no evidence about the code. */
function judgeFailure(
  { record, attempt, observed, now }: Situation,
  { verdict, progress }: AttemptEnd,
  blamed: Checkpoint | undefined,
): Judgement {
  const hadCapacity = attempt.trainingStartedAt !== undefined;
  const trained = hadCapacity && attempt.stop?.why !== 'user' && !attempt.handOver;
  const triesOlderCheckpoint = blamed !== undefined && hasOlder(record, observed, blamed);
  return judge(record, verdict, { madeProgress: progress, trained, hadCapacity, triesOlderCheckpoint }, now);
}

function noProgress({ record, attempt, now }: Situation, alert: string | undefined): Notice[] {
  if (!alert) return [];
  const text = `${alert}; not stopped, as progress cannot be seen`;
  return [notice(record, now, { alert: 'no-progress', about: attempt.jobName, text, runbook: 'no-progress' })];
}

/** Switches to the next capacity option; an elastic run records when a size found no instances. */
function afterNoCapacity({ record, observed, now }: Situation): Partial<RunRecord> {
  const capacityOptionId = optionAfterCapacityFailure(record, unusableOptionIds(observed));
  // The queue admitted the run for fewer instances.
  const isLarger = instancesOn(record, capacityOptionId) > instancesOn(record, record.capacityOptionId);
  return {
    capacityOptionId,
    ...(isLarger && { admitted: false }),
    ...(record.policy.pendingSeconds !== undefined && { sizeFailedAt: now, reservation: undefined }),
  };
}

/** The next attempt uses the capacity that the queue reserves for it. */
const largerNow = ({ reservation }: RunRecord): Partial<RunRecord> =>
  reservation ? { capacityOptionId: reservation.capacityOptionId, reservation: undefined } : {};

/** Whether a usable checkpoint remains besides the one that could not be read. */
function hasOlder(record: RunRecord, { checkpoints }: Observed, blamed: Checkpoint): boolean {
  if (checkpoints.kind !== 'listed') return false;
  const badCheckpoints = [...record.badCheckpoints, checkpointKey(blamed)];
  return newestUsable({ badCheckpoints }, checkpoints) !== undefined;
}

/** The job existed and does not any more, so it was deleted. Its name is never used again; the next attempt has its own. */
export function vanished(situation: Situation): Move {
  const { record, attempt, now } = situation;
  const progress = knownProgress(situation);
  if (progress === undefined) return waitForListing(situation);
  const reason = `${attempt.jobName} does not exist any more; somebody deleted it`;
  const verdict: Verdict = { failureClass: 'deleted', reason, signature: 'deleted' };
  const ended = goneAttempt(situation, reason, 'deleted');
  const evidence = { jobArn: attempt.jobArn ?? null };
  const next =
    record.desired === 'stop'
      ? withChanges(ended, stopRun(`stopped as asked; ${reason}`, now))
      : resumeOrFail(situation, { verdict, ended, progress, evidence });
  return withSteps(situation, withCommit(situation, ended, next));
}

/**
 * A job of our name with another creation time is not the one that we created: the name was freed and reused. The cost of our job is
 * booked.
 */
export function reused(situation: JobSituation): Move {
  const { record, attempt, job, now } = situation;
  const why = `the job named ${attempt.jobName} is not the one this run created; the name was deleted and taken again`;
  const ended = goneAttempt(situation, why, 'collision');
  const evidence = { arn: job.arn, createdAt: job.createdAt, ours: attempt.jobCreatedAt };
  const failed = failRun(record, now, { why, runbook: 'collision', evidence });
  return withSteps(situation, withCommit(situation, ended, withChanges(ended, failed)));
}
