import type { SimMs } from '../core/clock';
import { DEFAULT_SECONDS_PER_STEP } from '../scenario/load';
import { type JobRequest, type SimJob, wantedShapes } from './job';

/** A job as its create call leaves it, before the service has done anything. */
export function newJob(name: string, kind: SimJob['kind'], request: JobRequest, now: SimMs): SimJob {
  return {
    name,
    kind,
    request,
    spot: request.EnableManagedSpotTraining ?? false,
    truth: undefined,
    attempt: 0,
    resumeUri: '',
    rollsBackTo: undefined,
    skips: [],
    status: '',
    secondaryStatus: '',
    failureReason: undefined,
    createdAt: now,
    startedAt: undefined,
    endedAt: undefined,
    deletedAt: undefined,
    wanted: wantedShapes(request),
    held: undefined,
    chosen: undefined,
    heldSince: now,
    heldMs: 0,
    pendingSince: undefined,
    stepping: undefined,
    driverSince: undefined,
    isHung: false,
    silentSince: undefined,
    missingFields: [],
    isLeaveRequested: false,
    secondsPerStep: DEFAULT_SECONDS_PER_STEP,
    sparesLeft: 0,
    restartedAt: [],
    setAside: [],
    history: [],
    timers: new Set(),
    stopAt: undefined,
    pool: undefined,
  };
}

/** Updates a job of another owner, which the simulation does not run. */
export function setForeign(job: SimJob, status: string, now: SimMs): void {
  job.status = status;
  job.secondaryStatus = status === 'InProgress' ? 'Training' : status;
  if (status !== 'InProgress') job.held = undefined;
  job.history.push({
    at: now,
    status,
    secondaryStatus: job.secondaryStatus,
    failureReason: undefined,
    startedAt: job.startedAt,
    endedAt: status === 'InProgress' ? undefined : now,
    billableSeconds: undefined,
    trainingSeconds: undefined,
    shapes: job.chosen,
    finalStep: undefined,
  });
}
