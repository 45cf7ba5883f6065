import type { SimMs } from '../core/clock';
import { heldMs, isLive, type JobView, type SimJob } from './job';

/** What Describe returns for a job from now on. */
export function viewOf(job: SimJob, at: SimMs, endedAt: SimMs | undefined, billedShare: number): JobView {
  const { status, secondaryStatus, failureReason, startedAt } = job;
  const seconds = isLive(job) ? undefined : Math.round(heldMs(job, at) / 1000);
  return {
    at,
    status,
    secondaryStatus,
    failureReason,
    startedAt,
    endedAt,
    trainingSeconds: seconds,
    billableSeconds: seconds === undefined ? undefined : Math.round(seconds * billedShare),
    shapes: job.chosen,
    finalStep: job.stepping?.at,
  };
}
