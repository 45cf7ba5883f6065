import type { Effect } from '../action';
import type { Verdict } from '../classify';
import type { Attempt, AttemptStop, EpochMs, FailureClass, PresentJob, RunPolicy } from '../record';

/** Time between the request to save and exit and StopTrainingJob. */
const HAND_OVER_GRACE_MS = 900_000;
/** The request is written again until the driver confirms that it has read it: the first write may have failed. */
const ASK_AGAIN_MS = 240_000;

/** The request to save and exit, if it must be sent to the driver; undefined when the driver has confirmed it, or cannot read requests. */
export function handOverEffect(
  { handOver, progress, number }: Attempt,
  job: PresentJob,
  policy: RunPolicy,
  now: EpochMs,
): Effect | undefined {
  if (!handOver || !policy.writesHeartbeats || job.status !== 'InProgress' || progress?.vitals?.handOver)
    return undefined;
  if (handOver.sentAt !== undefined && now - handOver.sentAt < ASK_AGAIN_MS) return undefined;
  return { do: 'hand-over', attempt: number, text: handOver.text };
}

/**
 * Stops a job that was asked to exit and did not: after the grace time if a driver reads the request; immediately if none does, or if the
 * job has no instances on which anything could be saved. SIGTERM then gives the script 120 s.
 */
export function handOverStop(
  { handOver }: Attempt,
  job: PresentJob,
  policy: RunPolicy,
  now: EpochMs,
): AttemptStop | undefined {
  if (!handOver) return undefined;
  const canSave = job.secondaryStatus === 'Training' && policy.writesHeartbeats;
  // The container has ended; a stop would abort the upload of what was saved.
  const hasSaved = job.secondaryStatus === 'Uploading';
  if ((canSave || hasSaved) && now - handOver.at < HAND_OVER_GRACE_MS) return undefined;
  return { why: 'hand-over', at: now, text: handOver.text };
}

const ANSWERS: ReadonlySet<FailureClass> = new Set(['planned', 'retry']);

/** The verdict on an attempt that exited because it was asked to: a hand-over, with the text of the request as its reason. */
export function asHandOver({ handOver }: Attempt, verdict: Verdict): Verdict {
  return handOver && ANSWERS.has(verdict.failureClass)
    ? { ...verdict, failureClass: 'planned', reason: handOver.text }
    : verdict;
}
