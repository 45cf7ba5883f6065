import { DescribeTrainingJobCommand, UpdateTrainingJobCommand, type WarmPoolStatus } from '@aws-sdk/client-sagemaker';
import { issue } from '../../core/config/issue';
import type { DesiredAnswer, NoteAnswer, Refusal, ReleaseAnswer } from '../../core/contracts/control';
import { keptPool, warmPoolUsd } from '../../core/lifecycle/accounting/spend';
import { event } from '../../core/lifecycle/action';
import { askResume, askStop, endPool, type IntentChange, isResumable, writeNote } from '../../core/lifecycle/intent';
import { poolEnded } from '../../core/lifecycle/phases/settle-pool';
import { isOver, liveAttempt, type RunRecord, type WarmPool } from '../../core/lifecycle/record';
import { isJobNotFound } from '../shared/errors';
import { sendAbout } from '../shared/queue';
import { isQueued } from '../shared/queue-runs';
import type { ControlDeps } from './deps';
import { anotherRunRefusal, closedRefusal, liveIssue, refusal } from './own-run';

/** Reconcile writes often, so a person's change is retried on the newest version. */
const MAX_TRIES = 8;

/** Applies a person's request to the newest version of the record. Returns the record after the change. */
export async function changeRun(
  deps: Pick<ControlDeps, 'store'>,
  record: RunRecord,
  requestChange: (record: RunRecord) => IntentChange | undefined,
): Promise<RunRecord> {
  let current = record;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const change = requestChange(current);
    if (!change) return current;
    if (await deps.store.save(change.record, current, change.events)) return change.record;
    const newest = await deps.store.find(record.runId);
    if (!newest) throw new Error(`run ${record.runId} disappeared from the run table`);
    current = newest;
  }
  throw new Error(`run ${record.runId} is being written all the time; try again`);
}

/**
 * Ends the warm pool that the last job of the run left: until then its instances are billed and count against the quota. A
 * second call, or a call after another job has taken the pool over, ends nothing, and books the time for which the service reports that the
 * pool was kept.
 * https://docs.aws.amazon.com/sagemaker/latest/dg/train-warm-pools-how-to-use.html (a keep-alive period of 0 terminates it)
 */
export async function releasePool(deps: ControlDeps, own: RunRecord): Promise<ReleaseAnswer | Refusal> {
  if (!isOver(own) && liveAttempt(own)?.phase === 'created') {
    const about = { rule: 'release/live', must: 'must have no live job: its instances are in use' };
    return refusal(liveIssue(own, deps.region, about));
  }
  const none = { ok: true, runId: own.runId, released: false, reusedBy: null, savedUsd: null } as const;
  const pool = keptPool(own);
  const jobName = pool?.attempt.jobName ?? own.attempt?.jobName ?? null;
  const trainingJobName = own.kind === 'training' ? jobName : null;
  if (trainingJobName === null || !pool) return { ...none, trainingJobName, warmPoolStatus: null };
  const { released, seen } = await endIfAvailable(deps, trainingJobName);
  const answer = {
    ...{ ...none, trainingJobName, released },
    warmPoolStatus: seen?.Status ?? null,
    reusedBy: seen?.ReusedByJob ?? null,
  };
  if (released) return { ...answer, savedUsd: await bookReleased(deps, own, trainingJobName, pool) };
  const seconds = seen?.ResourceRetainedBillableTimeInSeconds;
  if (seconds !== undefined) await bookKept(deps, own, trainingJobName, { ...pool, seconds });
  return answer;
}

/** The warm pool status of the job; undefined when it has no pool, or was deleted. */
async function poolOf({ sagemaker }: ControlDeps, TrainingJobName: string): Promise<WarmPoolStatus | undefined> {
  try {
    return (await sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName }))).WarmPoolStatus;
  } catch (error) {
    if (isJobNotFound(error)) return undefined;
    throw error;
  }
}

/** Ends the pool if it is available. It is not an error if the call fails because another job has taken the pool over. */
async function endIfAvailable(deps: ControlDeps, job: string): Promise<{ released: boolean; seen?: WarmPoolStatus }> {
  const before = await poolOf(deps, job);
  if (before?.Status !== 'Available') return { released: false, seen: before };
  const change = { TrainingJobName: job, ResourceConfig: { KeepAlivePeriodInSeconds: 0 } };
  try {
    await deps.sagemaker.send(new UpdateTrainingJobCommand(change));
    return { released: true, seen: before };
  } catch (error) {
    const seen = await poolOf(deps, job);
    if (seen?.Status === 'Available') throw error;
    return { released: false, seen };
  }
}

/** Books a released pool until now. Returns the amount saved, USD. */
async function bookReleased(deps: ControlDeps, run: RunRecord, job: string, pool: WarmPool): Promise<number | null> {
  const now = deps.now().getTime();
  const text = `the warm pool of ${job} was released for team ${run.team}`;
  await changeRun(deps, run, (r) => endPool(r, now, event(now, 'warm-pool-released', text)));
  return warmPoolUsd({ ...pool, since: Math.min(now, pool.until) }, pool.until);
}

/** A pool that ended early cost only the time for which it was kept. */
async function bookKept(
  deps: ControlDeps,
  run: RunRecord,
  job: string,
  pool: WarmPool & { seconds: number },
): Promise<void> {
  const until = pool.since + pool.seconds * 1000;
  await changeRun(deps, run, (r) => endPool(r, until, poolEnded(job, pool.seconds, deps.now().getTime())));
}

/** Records that the run should stop. Stopping a run that is over is not an error. */
export async function stopRun(
  deps: ControlDeps,
  own: RunRecord,
  { reason }: { reason?: string },
): Promise<DesiredAnswer> {
  const why = `stop asked by team ${own.team}${reason ? `: ${reason}` : ''}`;
  const record = await changeRun(deps, own, (r) => askStop(r, why, deps.now().getTime()));
  return wake(deps, own, record);
}

/** Records a person's note, by which the run can be found. */
export async function noteRun(deps: ControlDeps, own: RunRecord, { text }: { text: string }): Promise<NoteAnswer> {
  const { runId } = await changeRun(deps, own, (r) => writeNote(r, text, deps.now().getTime()));
  return { ok: true, runId, note: text };
}

/** Records that the run should continue, from its newest committed checkpoint. */
export async function resumeRun(deps: ControlDeps, own: RunRecord): Promise<DesiredAnswer | Refusal> {
  const isEnding = isOver(own) || own.desired === 'stop';
  if (isEnding && !isResumable(own)) {
    const must = 'must be a run that is not completed, whose code was uploaded, and whose files were not deleted';
    const text = { must, got: `${own.runId}, ${own.state}`, fix: 'launch it again' };
    return refusal(issue('run/not-resumable', 'error', 'run', text));
  }
  const refused = (await closedRefusal(deps)) ?? (isEnding ? await anotherRunRefusal(deps, own.team) : undefined);
  if (refused) return refused;
  const record = await changeRun(deps, own, (r) => askResume(r, deps.now().getTime()));
  return wake(deps, own, record);
}

/**
 * A run that waits in the queue is started by the queue; everything else, including the stop of a waiting run, is done by the run's own
 * reconcile pass.
 */
async function wake(deps: ControlDeps, before: RunRecord, record: RunRecord): Promise<DesiredAnswer> {
  const changed = record.desired !== before.desired || (isOver(before) && !isOver(record));
  const answer: DesiredAnswer = {
    ok: true,
    runId: record.runId,
    desiredState: record.desired,
    state: before.state,
    changed,
  };
  // A run that is over needs no message. For every other run the message is sent again, because an earlier one may have been lost.
  if (isOver(record)) return answer;
  await sendAbout(deps, isQueued(record) ? 'admit' : 'run', record);
  return answer;
}
