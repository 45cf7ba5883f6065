import { jobName, MAX_JOB_NAME } from '../../contracts/names';
import { spendRefusal } from '../accounting/spend';
import { changeAttempt, type Effect, event, type Move, move, NO_MOVE, notice } from '../action';
import { CLASS_POLICY, judge } from '../budgets';
import { optionAfterCapacityFailure, unusableOptionIds } from '../capacity-options';
import { STILL_WRITES, writesStill } from '../health/gone';
import type { CreateOutcome, JobSituation, Observed, Situation } from '../observed';
import { type Attempt, type Checkpoint, type EpochMs, isWaiting, MAX_ATTEMPT, type RunRecord } from '../record';
import { chooseResume } from '../resuming/resume';
import { failRun, stopRun } from './end-run';
import { vanished } from './finish';
import { poolAsSeen, takenPool } from './settle-pool';
import { missing, undescribed } from './undescribed';
import { waitForCheckpoints } from './wait';
import { madeProgress } from './watch';

/** The service is eventually consistent: an absent job is believed to be absent only this long after the last create. */
const CONSISTENCY_PAUSE_MS = 5000;
/** Describe may not yet return a job that was accepted this recently. */
export const SETTLE_MS = 600_000;
/** A job that existed and is not found any more is requested again after this time before it counts as deleted. */
export const CONFIRM_ABSENCE_MS = 60_000;
/** Before a create call that was throttled, or could not be made, is made again. */
const AGAIN_PAUSE_MS = 2000;
/** Many creates at once are throttled for minutes; this many creates of one job over this long are reported to a person. */
const CREATES_ALARM = 10;
const CREATES_ALARM_MS = 3_600_000;

/** Prepares a new attempt: its number, name, capacity option and checkpoint are stored before anything is created. */
export function intendAttempt(record: RunRecord, observed: Observed, now: EpochMs): Move {
  const refusal = spendRefusal(record, record.capacityOptionId, now);
  if (refusal) return failRun(record, now, { why: refusal, runbook: 'spend' });
  if (observed.optionsThatDoNotFit.includes(record.capacityOptionId)) {
    return failRun(record, now, { why: `the memory check refuses ${record.capacityOptionId}`, runbook: 'memory' });
  }
  const number = (record.attempt?.number ?? 0) + 1;
  if (number > MAX_ATTEMPT || jobName(record.environment, record.runId, number).length > MAX_JOB_NAME) {
    const why = `its jobs have used up their names with attempt ${number - 1}; continue in a new run with checkpoints.startFrom: ${record.runId}`;
    return failRun(record, now, { why, runbook: 'attempts' });
  }
  const choice = chooseResume(record, observed);
  if (choice.kind === 'refuse') return failRun(record, now, { why: choice.why, runbook: 'checkpoint' });
  if (choice.kind === 'wait') return waitForCheckpoints(record, choice.why, now);
  const resumeFrom = choice.kind === 'from' ? choice.checkpoint : null;
  const attempt = { ...newAttempt(record, number, resumeFrom, now), files: observed.files };
  const from = fromWhere(record, resumeFrom, number);
  const passedOver = choice.kind === 'from' ? choice.passedOver : [];
  return move({
    changes: {
      attempt,
      state: number === 1 ? 'submitting' : 'resuming',
      reason: `attempt ${number} ${from}`,
      ...poolAsSeen(record, observed),
    },
    events: [
      event(now, 'attempt-intended', `attempt ${number} will start ${from} as ${attempt.jobName}`, {
        resumeFrom,
        passedOver,
        rung: attempt.capacityOptionId,
      }),
    ],
    effects: [createEffect(attempt)],
  });
}

/** What a script finds by itself under /opt/ml/checkpoints is not known here. */
function fromWhere({ policy }: RunRecord, resumeFrom: Checkpoint | null, number: number): string {
  if (resumeFrom) return `from step ${resumeFrom.step}`;
  return policy.seesCommits || number === 1
    ? 'from the beginning'
    : 'from what the script finds of its own checkpoints';
}

function newAttempt(record: RunRecord, number: number, resumeFrom: Checkpoint | null, now: EpochMs): Attempt {
  return {
    number,
    jobName: jobName(record.environment, record.runId, number),
    phase: 'intent',
    capacityOptionId: record.capacityOptionId,
    resumeFrom,
    intentAt: now,
    createTries: 1,
    lastCreateAt: now,
    status: '',
    secondaryStatus: '',
    committedAtStart: resumeFrom?.step ?? null,
    firstStep: null,
    lastStep: null,
    reason: '',
    costUsd: null,
  };
}

const createEffect = (attempt: Attempt): Effect => ({
  do: 'create',
  attempt: attempt.number,
  capacityOptionId: attempt.capacityOptionId,
  resumeFrom: attempt.resumeFrom,
});

/**
 * Settles an attempt whose job may or may not exist: its name is fixed, and the answer to the create call is missing or ambiguous. The name
 * is never changed to avoid an error; Describe decides, and a job that it returns is adopted only if its tags are ours.
 */
export function settleIntent(situation: Situation): Move {
  const { job, create } = situation.observed;
  if (job.kind === 'present') return settlePresent({ ...situation, job });
  if (create) return settleOutcome(situation, create);
  return job.kind === 'absent' ? settleAbsent(situation) : NO_MOVE;
}

function settlePresent(situation: JobSituation): Move {
  const { record, attempt, job, now } = situation;
  if (job.identity === 'ours') return adopt(situation, 'job-adopted', { arn: job.arn, jobCreatedAt: job.createdAt });
  if (job.identity === 'unread') return notifyUnreadTags(record, attempt, now);
  const why = `a job named ${attempt.jobName} exists that is not this attempt's; it was left alone`;
  const failed = failRun(record, now, {
    why,
    runbook: 'collision',
    evidence: { arn: job.arn, createdAt: job.createdAt },
  });
  // The attempt ends with the run: a resume uses the next name.
  return endUncreated(record, { ...attempt, failureClass: 'collision' }, failed, now);
}

function settleAbsent(situation: Situation): Move {
  const { record, attempt, now } = situation;
  const sinceCreate = now - (attempt.lastCreateAt ?? 0);
  const hasRun = didRun(situation);
  if (record.desired === 'stop' && hasRun !== true) {
    if (isInDoubt(attempt) && sinceCreate < SETTLE_MS) return NO_MOVE;
    return endUncreated(record, attempt, stopRun('stopped before a job was created', now), now);
  }
  if (sinceCreate < CONSISTENCY_PAUSE_MS) return NO_MOVE;
  if (hasRun === undefined) return NO_MOVE;
  if (!hasRun) return createAgain(situation);
  // A single Describe that does not find the job may be stale, so a second one must agree.
  if (attempt.absentSince === undefined) return missing(situation);
  if (writesStill(situation)) return undescribed(situation, STILL_WRITES);
  const isSure = now - attempt.absentSince >= CONFIRM_ABSENCE_MS && sinceCreate >= SETTLE_MS;
  // The job was deleted, and its name is not used again.
  return isSure ? vanished(situation) : NO_MOVE;
}

/**
 * Whether the attempt's job ran although no create call was answered and Describe does not find it: it left a heartbeat or a commit.
 * Undefined when its commits cannot be observed now.
 */
const didRun = (situation: Situation): boolean | undefined =>
  situation.observed.heartbeat?.attempt === situation.attempt.number || madeProgress(situation);

function notifyUnreadTags(record: RunRecord, attempt: Attempt, now: EpochMs): Move {
  const text = `a job named ${attempt.jobName} exists, but its tags cannot be read to see whose it is`;
  return move({
    notices: [notice(record, now, { alert: 'tags-unreadable', about: attempt.jobName, text, runbook: 'access' })],
  });
}

function createAgain({ record, attempt, observed, now }: Situation): Move {
  const start = isInDoubt(attempt) ? undefined : observed.startFrom;
  if (start && 'missing' in start) {
    const failed = failRun(record, now, { why: `checkpoints.startFrom: ${start.missing}`, runbook: 'checkpoint' });
    return endUncreated(record, attempt, failed, now);
  }
  // What was concluded while no one could see whether there was a job, a stop too, was about a job that never existed.
  const { stop, undescribedSince: _, ...own } = attempt;
  const isSettled = now - (attempt.lastCreateAt ?? 0) >= SETTLE_MS;
  const unmadeTries = isSettled ? attempt.createTries : attempt.unmadeTries;
  // The run that it starts from may have gone on, and removed what was its newest checkpoint.
  const from = start && 'step' in start ? { resumeFrom: start, committedAtStart: start.step } : {};
  const again = { ...own, ...from, createTries: attempt.createTries + 1, lastCreateAt: now, unmadeTries };
  const isFailing = again.createTries >= CREATES_ALARM && now - attempt.intentAt >= CREATES_ALARM_MS;
  const text = `${again.createTries} creates gave no job`;
  return move({
    changes: { attempt: again, ...(stop && { state: 'submitting', reason: 'its job is created again' }) },
    events: [
      event(now, 'create-again', `no job named ${attempt.jobName} exists; creating it under the same name`, {
        tries: again.createTries,
      }),
    ],
    effects: [createEffect(again)],
    notices: isFailing
      ? [notice(record, now, { alert: 'create-keeps-failing', about: attempt.jobName, text, runbook: 'platform' })]
      : [],
  });
}

function settleOutcome(situation: Situation, outcome: CreateOutcome): Move {
  const { record, attempt, observed, now } = situation;
  switch (outcome.kind) {
    case 'accepted':
      return adopt(situation, 'job-created', { arn: outcome.arn });
    case 'limit':
    case 'refused': {
      if (observed.job.kind !== 'absent') return NO_MOVE;
      if (isInDoubt({ ...attempt, createTries: attempt.createTries - 1 })) return waitForDescribe(situation, outcome);
      if (outcome.kind !== 'refused') return waitForQuota(situation, outcome.error);
      const { failureClass, error } = outcome;
      const { runbook } = CLASS_POLICY[failureClass];
      const failed = failRun(record, now, { why: `create was refused: ${error}`, runbook, evidence: { failureClass } });
      return endUncreated(record, { ...attempt, failureClass }, failed, now);
    }
    case 'throttled':
    case 'not-attempted':
      return isWaiting(record, now) ? NO_MOVE : makeAgain(situation);
    case 'doubtful':
    case 'exists':
      // The next Describe decides.
      return NO_MOVE;
  }
}

/** The call made no job, and is made again. */
const makeAgain = ({ record, attempt, now }: Situation): Move =>
  move({
    changes: {
      ...changeAttempt(record, { unmadeTries: Math.min(attempt.createTries, (attempt.unmadeTries ?? 0) + 1) }),
      notBefore: now + AGAIN_PAUSE_MS,
    },
  });

/**
 * An earlier create call whose answer was lost may have made the job, and Describe may not return it yet: the run keeps its capacity, and
 * the call is made once more when that is certain.
 */
const waitForDescribe = ({ attempt, now }: Situation, { error }: { error: string }): Move =>
  move({
    changes: {
      notBefore: (attempt.lastCreateAt ?? now) + SETTLE_MS,
      reason: `an earlier create call may have made the job; this one was refused: ${error}`,
    },
  });

function adopt(
  { record, attempt, now }: Situation,
  what: 'job-adopted' | 'job-created',
  { arn, jobCreatedAt }: { arn: string; jobCreatedAt?: EpochMs },
): Move {
  const text =
    what === 'job-created'
      ? `job ${attempt.jobName} was created`
      : `job ${attempt.jobName} exists and its tags are ours; adopted`;
  return move({
    changes: {
      ...changeAttempt(record, {
        phase: 'created',
        jobArn: arn,
        jobCreatedAt,
        acceptedAt: now,
        absentSince: undefined,
      }),
      state: attempt.number === 1 ? 'pending' : 'resuming',
      admitted: true,
      ...takenPool(record, Math.min(now, jobCreatedAt ?? now)),
    },
    events: [event(now, what, text, { arn, tries: attempt.createTries })],
  });
}

/**
 * A job of the attempt may exist although it was not observed. Its size is then fixed, and it is not created on another capacity option.
 */
export const isInDoubt = ({ phase, createTries, unmadeTries = 0 }: Attempt): boolean =>
  phase === 'intent' && unmadeTries < createTries;

/** What the service calls a limit, although no quota helps (https://github.com/aws/amazon-sagemaker-examples/issues/1001, 2026-11-30). */
const NOT_OFFERED = /is not available in this region/i;

/** The quota is used up: the run goes back to the queue. This uses up no attempt, and the attempt keeps its name. */
function waitForQuota({ record, attempt, observed, now }: Situation, error: string): Move {
  const capacityOptionId = optionAfterCapacityFailure(record, unusableOptionIds(observed));
  const verdict =
    NOT_OFFERED.test(error) && capacityOptionId === record.capacityOptionId
      ? { failureClass: 'config' as const, reason: error, signature: 'quota' }
      : { failureClass: 'capacity' as const, reason: `quota is used up: ${error}`, signature: 'quota' };
  const { budgets, next } = judge(record, verdict, { madeProgress: false, trained: false }, now);
  if (next.kind === 'fail')
    return endUncreated(record, attempt, failRun(record, now, { why: next.why, runbook: next.runbook }), now);
  return move({
    changes: {
      ...changeAttempt(record, { capacityOptionId, unmadeTries: attempt.createTries }),
      capacityOptionId,
      budgets,
      state: 'queued',
      admitted: false,
      notBefore: now + next.delaySeconds * 1000,
      reason: verdict.reason,
    },
    events: [
      event(now, 'quota-wait', verdict.reason, { tries: budgets.capacityTries, delaySeconds: next.delaySeconds }),
    ],
  });
}

/** Ends an attempt that never had a job together with its run. */
export function endUncreated(record: RunRecord, attempt: Attempt, ending: Move, now: EpochMs): Move {
  const reason = ending.changes.reason ?? attempt.reason;
  const { failureClass } = attempt;
  return {
    ...ending,
    changes: { ...changeAttempt(record, { phase: 'ended', endedAt: now, reason, failureClass }), ...ending.changes },
  };
}
