import { INTERRUPTED, WAITS_FOR_INSTANCES } from '../accounting/pauses';
import { judgeSpend } from '../accounting/spend';
import { dayOf, type Effect, event, type Move, move, notice, type TimelineEvent } from '../action';
import { capacityCame } from '../budgets';
import { LATE_HEARTBEAT_MS } from '../health/gone';
import { judgeHang, nextProgress } from '../health/hang';
import { jobAlerts } from '../health/job-alerts';
import { stepEvents, stepsOf } from '../health/step-times';
import type { JobSituation, Observed, Situation } from '../observed';
import type { Attempt, AttemptStop, Checkpoint, EpochMs, Notice, PresentJob, RunRecord, RunState } from '../record';
import { committedSince, newestCommitted } from '../resuming/resume';
import { handOverEffect, handOverStop } from './hand-over';

/** StopTrainingJob is sent again when the job still runs after this long: the first call may have been lost. */
const STOP_AGAIN_MS = 180_000;
const CAPACITY_ALARM_MS = 3_600_000;
/** A stop takes two minutes; one that takes this long is reported, so that a person can contact AWS Support. */
const STOPPING_ALARM_MS = 3_600_000;
/** How often the record is updated for a job that is alive without heartbeats. */
const ALIVE_AGAIN_MS = 60_000;
/** A heartbeat that cannot be read, or checkpoints that cannot be listed, are reported after this long; shorter errors are not. */
const UNREAD_ALARM_MS = 1_200_000;

/** Handles a job that is alive: records what was observed, and stops the job when a person or a rule wants it stopped. */
export function watchJob(situation: JobSituation): Move {
  const { record, attempt, job, observed, now } = situation;
  const seen = asSeen(situation);
  const committed = newestCommitted(record, observed);
  const newCommit = committed !== null && committed.step > (record.committed?.step ?? -1);
  const { stop, suspectedHangAt, alerts } = wantsStop({ ...situation, attempt: seen }, newCommit, attempt);
  const isNewStop = stop !== undefined && attempt.stop === undefined;
  const sends = stop !== undefined && job.status === 'InProgress' && isDue(stop, now);
  const asks = stop ? undefined : handOverEffect(seen, job, record.policy, now);
  // `see` created this object for this pass only.
  const next: Attempt = Object.assign(
    seen,
    { suspectedHangAt },
    stop && { stop: sends ? { ...stop, sentAt: now } : stop },
    asks && seen.handOver && { handOver: { ...seen.handOver, sentAt: now } },
  );
  const state = stateOf(record, next, job);
  return move({
    changes: {
      attempt: next,
      committed,
      state,
      reason: reasonOf(record, next, job),
      // Its instances are its own again if they were given up while the job was not found.
      admitted: true,
      ...(isTraining(job) && { budgets: capacityCame(record.budgets) }),
    },
    events: [
      ...statusEvents(attempt, job, now),
      ...progressEvents(attempt, seen, now),
      ...(newCommit ? [commitEvent(committed, observed, now)] : []),
      ...(isNewStop ? [event(now, 'stop-decided', stop.text, { why: stop.why, progress: seen.progress ?? null })] : []),
    ],
    effects: [...(sends ? [stopEffect(next)] : []), ...(asks ? [asks] : [])],
    notices: [...alerts, ...capacityAlarm(record, next, job, now), ...alarms({ ...situation, attempt: next })],
  });
}

const alarms = (situation: JobSituation): Notice[] => [
  ...stoppingAlarm(situation),
  ...unreadAlarm(situation),
  ...unlistedAlarm(situation),
  ...jobAlerts(situation.record, situation.attempt, situation.now),
];

/** Timeline event for a commit, at the time when its marker was written if that is known. */
export function commitEvent(committed: Checkpoint, { checkpoints }: Observed, now: EpochMs): TimelineEvent {
  const writtenAt = checkpoints.kind === 'listed' ? checkpoints.committedAt?.[committed.uri] : undefined;
  const at = Math.min(now, writtenAt ?? now);
  return event(at, 'checkpoint-committed', `step ${committed.step} is committed`, { ...committed });
}

const isTraining = (job: PresentJob): boolean => job.status === 'InProgress' && job.secondaryStatus === 'Training';

/** The attempt, updated with what Describe and the heartbeat show. */
function asSeen({ attempt, job, observed, now }: JobSituation): Attempt {
  const progress = nextProgress(attempt, observed.heartbeat, now);
  const step = progress?.step ?? null;
  const steps = stepsOf(progress);
  return {
    ...attempt,
    absentSince: undefined,
    undescribedSince: undefined,
    silentHeartbeat: undefined,
    files: attempt.files ?? observed.files,
    status: job.status,
    secondaryStatus: job.secondaryStatus,
    jobCreatedAt: attempt.jobCreatedAt ?? job.createdAt,
    trainingStartedAt: job.trainingStartedAt ?? attempt.trainingStartedAt,
    trainingSince: trainingSince(attempt, job, now),
    pauses: job.pauses ?? attempt.pauses,
    selected: job.selected ?? attempt.selected,
    aliveAt: isLate(progress, observed, now) ? aliveAt(attempt, now) : undefined,
    unreadSince: isUnread(attempt, observed) ? (attempt.unreadSince ?? now) : undefined,
    unlistedSince: unlistedSince(attempt, observed, now),
    progress,
    firstStep: attempt.firstStep ?? steps.first ?? step,
    lastStep: step ?? steps.last ?? attempt.lastStep,
  };
}

/** Without heartbeats that can be read, only the service shows how long the job lives, and for how long it is billed. */
const isLate = (progress: Attempt['progress'], { heartbeatError }: Observed, now: EpochMs): boolean =>
  progress === undefined ? heartbeatError !== undefined : now - progress.heartbeatAt > LATE_HEARTBEAT_MS;

/** Not updated again within one pass, whose rounds are less than a minute apart: each update would cause another round. */
function aliveAt({ aliveAt: before }: Attempt, now: EpochMs): EpochMs {
  const isFresh = before !== undefined && now >= before && now - before < ALIVE_AGAIN_MS;
  return isFresh ? before : now;
}

/** As the service reports it, otherwise now if the previous status was one without training. */
function trainingSince(attempt: Attempt, job: PresentJob, now: EpochMs): EpochMs | undefined {
  if (job.trainingSince !== undefined) return job.trainingSince;
  const again = attempt.trainingStartedAt !== undefined && WAITING_STATUSES.has(attempt.secondaryStatus);
  return job.secondaryStatus === 'Training' && again ? now : attempt.trainingSince;
}

/** Statuses between two periods of Training of one job. */
const WAITING_STATUSES: ReadonlySet<string> = new Set([...INTERRUPTED, ...WAITS_FOR_INSTANCES, 'Downloading']);

/** The heartbeat should be readable and is not: reading failed, or an earlier heartbeat has disappeared. */
const isUnread = (attempt: Attempt, { heartbeat, heartbeatError }: Observed): boolean =>
  heartbeatError !== undefined || (heartbeat === undefined && attempt.progress !== undefined);

/** Checkpoints are not listed at every observation; between two listings the answer of the last one stands. */
function unlistedSince({ unlistedSince: before }: Attempt, { checkpoints }: Observed, now: EpochMs) {
  if (checkpoints.kind === 'not-asked') return before;
  return checkpoints.kind === 'unreadable' ? (before ?? now) : undefined;
}

interface StopRequest {
  stop?: AttemptStop;
  suspectedHangAt?: EpochMs;
  alerts: Notice[];
}

/** The first reason to stop is kept: an attempt is stopped for one reason, by which its end is classified. */
function wantsStop(
  { record, attempt, job, observed, now }: JobSituation,
  newCommit: boolean,
  before: Attempt,
): StopRequest {
  if (attempt.stop) return { stop: attempt.stop, alerts: [] };
  if (record.desired === 'stop') return { stop: { why: 'user', at: now, text: 'stopped as asked' }, alerts: [] };
  const spend = judgeSpend(record, attempt, newCommit, now);
  if (spend) return { stop: { why: 'spend', at: now, text: spend }, alerts: [] };
  const leaves = handOverStop(attempt, job, record.policy, now);
  if (leaves) return { stop: leaves, alerts: [] };
  const hang = judgeHang({ attempt, job, policy: record.policy }, signsOfLife(observed, attempt, before), now);
  if (hang.kind === 'moving') return { alerts: [] };
  if (hang.kind === 'unknown') return { suspectedHangAt: attempt.suspectedHangAt, alerts: [] };
  const suspectedHangAt = attempt.suspectedHangAt ?? now;
  if (hang.kind === 'suspected') return { suspectedHangAt, alerts: [] };
  if (hang.maySee) return { suspectedHangAt, stop: { why: 'hang', at: now, text: hang.text }, alerts: [] };
  const text = `${hang.text}; progress cannot be seen from outside, so it was not stopped`;
  return {
    suspectedHangAt,
    alerts: [notice(record, now, { alert: 'hang-suspected', about: stretchOf(attempt), text, runbook: 'hang' })],
  };
}

const signsOfLife = ({ heartbeat, heartbeatError, checkpoints }: Observed, seen: Attempt, before: Attempt) => ({
  isRead: heartbeat !== undefined,
  isNewer: (seen.progress?.heartbeatAt ?? 0) > (before.progress?.heartbeatAt ?? 0),
  isUnreadable: heartbeatError !== undefined,
  newestWriteAt: checkpoints.kind === 'listed' ? checkpoints.newestWriteAt : undefined,
});

/** Whether StopTrainingJob must be sent, for the first time or again. */
export const isDue = (stop: AttemptStop, now: EpochMs): boolean =>
  stop.sentAt === undefined || now - stop.sentAt >= STOP_AGAIN_MS;

export const stopEffect = ({ jobName }: Attempt): Effect => ({ do: 'stop', jobName });

function stateOf(record: RunRecord, attempt: Attempt, job: PresentJob): RunState {
  if (attempt.stop || job.status === 'Stopping') return 'stopping';
  if (job.secondaryStatus === 'Training' || job.secondaryStatus === 'Uploading') return 'running';
  // The service may restart the instances of an attempt by itself after they have trained.
  const began = attempt.number > 1 || record.state === 'running' || record.state === 'resuming';
  return began ? 'resuming' : 'pending';
}

function reasonOf(record: RunRecord, attempt: Attempt, job: PresentJob): string {
  const leaves = attempt.stop ?? attempt.handOver;
  if (leaves) return leaves.text;
  return job.secondaryStatus === 'Training' ? '' : record.reason;
}

function statusEvents(attempt: Attempt, job: PresentJob, now: EpochMs) {
  if (attempt.status === job.status && attempt.secondaryStatus === job.secondaryStatus) return [];
  const text = `${attempt.jobName} is ${job.status} / ${job.secondaryStatus}`;
  return [event(now, 'job-status', text, { status: job.status, secondaryStatus: job.secondaryStatus })];
}

/** Events that the ledger needs: when steps began, and when a declared phase began. */
export function progressEvents(before: Attempt, seen: Attempt, now: EpochMs) {
  const { progress } = seen;
  if (!progress || progress === before.progress) return [];
  const steps = progress.starts ? stepEvents(before, seen, now) : untimedFirstStep(before, seen, progress.movedAt);
  // Until its first step every start is in phase `start`, which is the ledger's default for that time.
  if (progress.phase === before.progress?.phase || progress.phase === 'start') return steps;
  const text = `phase ${progress.phase || 'train'}`;
  return [...steps, event(progress.movedAt, 'phase', text, { phase: progress.phase, step: progress.step })];
}

/** An older driver does not report when its first step was; the time of the first observation is the best estimate. */
const untimedFirstStep = (before: Attempt, seen: Attempt, at: EpochMs) =>
  before.firstStep === null && seen.firstStep !== null
    ? [event(at, 'first-step', `step ${seen.firstStep}`, { step: seen.firstStep })]
    : [];

function capacityAlarm(record: RunRecord, attempt: Attempt, job: PresentJob, now: EpochMs): Notice[] {
  const since = attempt.pauses?.since ?? attempt.acceptedAt ?? attempt.intentAt;
  if (!WAITS_FOR_INSTANCES.includes(job.secondaryStatus) || now - since < CAPACITY_ALARM_MS) return [];
  const text = `${attempt.jobName} has waited more than an hour for capacity`;
  return [notice(record, now, { alert: 'capacity-wait', about: stretchOf(attempt), text, runbook: 'capacity' })];
}

/** A job whose instances were taken away and given back may be reported again: the earlier wait is over. */
const stretchOf = ({ jobName, pauses, trainingSince }: Attempt): string =>
  pauses && (pauses.ms > 0 || pauses.since !== undefined) ? `${jobName}/${pauses.since ?? trainingSince}` : jobName;

function stoppingAlarm({ record, attempt, job, now }: JobSituation): Notice[] {
  const { stop } = attempt;
  if (!stop || now - stop.at < STOPPING_ALARM_MS) return [];
  const text = `${attempt.jobName} was asked to stop ${Math.round((now - stop.at) / 60_000)} min ago and is still ${job.status}`;
  return [notice(record, now, { alert: 'stop-takes-long', about: attempt.jobName, text, runbook: 'stopping' })];
}

function unreadAlarm(situation: Situation): Notice[] {
  const { attempt, observed } = situation;
  const why = observed.heartbeatError ?? 'it is not there any more';
  const text = `the heartbeat of ${attempt.jobName} cannot be read (${why}); a hang would not be noticed, and nothing is stopped for it`;
  return lasting(situation, attempt.unreadSince, { alert: 'heartbeat-unreadable', text, runbook: 'heartbeat' });
}

function unlistedAlarm(situation: Situation): Notice[] {
  const { attempt, observed } = situation;
  if (observed.checkpoints.kind !== 'unreadable') return [];
  const text = `the checkpoints of ${attempt.jobName} cannot be listed (${observed.checkpoints.error}); it trains on, and whether it saves is not known`;
  return lasting(situation, attempt.unlistedSince, { alert: 'checkpoints-unreadable', text, runbook: 'checkpoint' });
}

/** The notice of something that cannot be read since then, once it has lasted long enough, and once for each day. */
function lasting(
  { record, attempt, now }: Situation,
  since: EpochMs | undefined,
  about: { alert: string; text: string; runbook: string },
): Notice[] {
  if (since === undefined || now - since < UNREAD_ALARM_MS) return [];
  return [
    notice(record, now, { ...about, about: `${attempt.jobName}/${since}/${dayOf(since + UNREAD_ALARM_MS, now)}` }),
  ];
}

/** Whether the attempt committed anything new; undefined when that cannot be observed now, so that the caller must wait. */
export function madeProgress({ record, attempt, observed }: Situation): boolean | undefined {
  return record.policy.seesCommits ? committedSince(record, attempt, observed) : false;
}
