import type { Effect, Move } from '../action';
import type { Verdict } from '../classify';
import { largestRung } from '../ladder';
import type { PresentJob } from '../observed';
import type { Attempt, AttemptStop, EpochMs, FailureClass, RunPolicy, RunRecord } from '../record';
import { event, notice } from '../timeline';

/** A job that was asked to save and leave has this long before StopTrainingJob is sent. */
export const HAND_OVER_GRACE_MS = 900_000;
/** The request is written again until the driver says that it has read it: the first write may have failed. */
const ASK_AGAIN_MS = 240_000;

/** The request to save and leave, where the driver must be told; undefined when it has been, or cannot read it. */
export function handOverEffect(
  { handOver, progress, jobName, number }: Attempt,
  job: PresentJob,
  policy: RunPolicy,
  now: EpochMs,
): Effect | undefined {
  if (!handOver || !readsRequests(policy) || job.status !== 'InProgress' || progress?.vitals?.handOver)
    return undefined;
  if (handOver.sentAt !== undefined && now - handOver.sentAt < ASK_AGAIN_MS) return undefined;
  return { do: 'hand-over', jobName, attempt: number, text: handOver.text, evidence: { why: handOver.why } };
}

/**
 * The stop of a job that was asked to leave and did not: after the grace time where a driver reads the request, at once where none does,
 * or where the job has no instances on which anything could be saved. SIGTERM then gives the script 120 s.
 */
export function handOverStop(
  { handOver }: Attempt,
  job: PresentJob,
  policy: RunPolicy,
  now: EpochMs,
): AttemptStop | undefined {
  if (!handOver) return undefined;
  const canSave = job.secondaryStatus === 'Training' && readsRequests(policy);
  // Its container has ended; a stop would cut off the upload of what was saved.
  const hasSaved = job.secondaryStatus === 'Uploading';
  if ((canSave || hasSaved) && now - handOver.at < HAND_OVER_GRACE_MS) return undefined;
  return { why: 'hand-over', at: now, text: handOver.text };
}

/** The driver looks for requests wherever it beats. */
const readsRequests = ({ beats, seesSteps }: RunPolicy): boolean => beats ?? seesSteps;

const ANSWERS: ReadonlySet<FailureClass> = new Set(['planned', 'retry']);

/** The verdict on an attempt that left because it was asked to: a hand-over, in the words of the request. */
export function asHandOver({ handOver }: Attempt, verdict: Verdict): Verdict {
  return handOver && ANSWERS.has(verdict.failureClass)
    ? { ...verdict, failureClass: 'planned', reason: handOver.text }
    : verdict;
}

/** A preempted run goes back to the queue, at the place that it had: `queuedAt` stays. */
export function backToQueue(record: RunRecord, attempt: Attempt, next: Move, now: EpochMs): Move {
  const { handOver } = attempt;
  if (handOver?.why !== 'preempted' || next.changes.state !== 'resuming') return next;
  const text = `attempt ${attempt.number} made room; back in the queue at its place`;
  const told = notice(record, now, {
    alert: 'preempted',
    about: attempt.jobName,
    text: `${handOver.text}; it resumes when there is room`,
    runbook: 'preemption',
  });
  return {
    ...next,
    changes: {
      ...next.changes,
      state: 'queued',
      admitted: false,
      preemptedAt: now,
      reason: handOver.text,
      // The queue chooses among all sizes again.
      rungId: largestRung(record),
      roomFor: undefined,
    },
    events: [...next.events, event(now, 'run-preempted', text, { queuedAt: record.queuedAt ?? record.createdAt })],
    notices: [...next.notices, told],
  };
}
