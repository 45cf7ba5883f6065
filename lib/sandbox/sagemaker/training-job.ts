import type { CreateTrainingJobCommandInput, SecondaryStatus, TrainingJobStatus } from '@aws-sdk/client-sagemaker';
import type { ApiCall } from '../wire/api-call';
import { acceptedJob, isTerminal, type StoredJob } from './job-store';

/** The request as the service stores it; tags are stored separately. */
export type TrainingRequest = Omit<CreateTrainingJobCommandInput, 'Tags'>;

/** One entry of SecondaryStatusTransitions; times in milliseconds since the epoch. */
interface Transition {
  status: SecondaryStatus;
  startedAt: number;
  endedAt?: number;
  message: string;
}

interface WarmPool {
  status: 'Available' | 'InUse' | 'Reused' | 'Terminated';
  reusedBy?: string;
  /** Since when the instances have been available for another job, and until when at most. */
  availableAt?: number;
  retainedSeconds?: number;
}

export interface TrainingJob extends StoredJob<TrainingRequest, TrainingJobStatus> {
  secondaryStatus: SecondaryStatus;
  transitions: Transition[];
  /** Milliseconds of use, without the current period. */
  usedMs: number;
  useBeganAt?: number;
  warmPool?: WarmPool;
  finalMetrics: Record<string, { value: number; at: number }>;
}

const MESSAGES: Partial<Record<SecondaryStatus, string>> = {
  Starting: 'Starting the training job',
  Pending: 'Training job waiting for capacity',
  Downloading: 'Downloading the training image and input data',
  Training: 'Training image download completed. Training in progress.',
  Uploading: 'Uploading generated training model',
  Completed: 'Training job completed',
  Stopping: 'Stopping the training job',
  Stopped: 'Training job stopped',
  Interrupted: 'Training job interrupted',
  Restarting: 'Restarting the training job',
  MaxRuntimeExceeded: 'Training job runtime exceeded MaxRuntimeInSeconds provided',
  MaxWaitTimeExceeded: 'Training job wait time exceeded MaxWaitTimeInSeconds provided',
};

export function newTrainingJob(call: ApiCall): TrainingJob {
  const job: TrainingJob = {
    ...acceptedJob<TrainingRequest>('Training', call),
    secondaryStatus: 'Starting',
    transitions: [],
    usedMs: 0,
    finalMetrics: {},
  };
  enter(job, 'Starting', job.createdAt);
  return job;
}

/** Moves the job to a secondary status and ends the previous one. */
export function enter(job: TrainingJob, status: SecondaryStatus, now: number, message?: string): void {
  const last = job.transitions.at(-1);
  if (last && last.endedAt === undefined) last.endedAt = now;
  job.secondaryStatus = status;
  job.status = STATUS_OF[status] ?? 'InProgress';
  const endedAt = isTerminal(job) ? now : undefined;
  job.transitions.push({ status, startedAt: now, endedAt, message: message ?? MESSAGES[status] ?? '' });
  job.modifiedAt = now;
}

const STATUS_OF: Partial<Record<SecondaryStatus, TrainingJobStatus>> = {
  Completed: 'Completed',
  Failed: 'Failed',
  Stopping: 'Stopping',
  Stopped: 'Stopped',
  MaxRuntimeExceeded: 'Stopped',
  MaxWaitTimeExceeded: 'Stopped',
};

/** Milliseconds for which the instances were in use until `now`; waiting and repair do not count. */
export function usedMsUntil(job: TrainingJob, now: number): number {
  return job.usedMs + (job.useBeganAt === undefined ? 0 : now - job.useBeganAt);
}

/** Starts or ends a period of use. */
export function setInUse(job: TrainingJob, inUse: boolean, now: number): void {
  job.usedMs = usedMsUntil(job, now);
  job.useBeganAt = inUse ? now : undefined;
  if (inUse) job.startedAt ??= now;
}
