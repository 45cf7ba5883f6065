import type { CreateProcessingJobCommandInput, CreateTrainingJobCommandInput } from '@aws-sdk/client-sagemaker';
import type { FailureHistory, Skip } from '../../../lib/core/config/job-file';
import type { Scheduled, SimMs } from '../core/clock';
import type { Fault } from '../scenario/schema';
import type { RunTruth } from './steps/run-truth';
import type { Stepping } from './steps/stepping';

/** Instances of one type. */
export interface Shape {
  instanceType: string;
  count: number;
}

/** Instances that the service keeps after a job for the next job with the same request. */
export interface WarmPool {
  shapes: readonly Shape[];
  since: SimMs;
  /** When it was taken over or expired; undefined while it waits. */
  endedAt: SimMs | undefined;
  reusedBy: string | undefined;
}

/** What Describe would return for a job from one moment on. */
export interface JobView {
  at: SimMs;
  status: string;
  secondaryStatus: string;
  failureReason: string | undefined;
  startedAt: SimMs | undefined;
  endedAt: SimMs | undefined;
  billableSeconds: number | undefined;
  trainingSeconds: number | undefined;
  shapes: readonly Shape[] | undefined;
  finalStep: number | undefined;
}

/** The create request of either kind of job, with the stopping condition of the kind that has more fields. */
export type JobRequest = Partial<CreateTrainingJobCommandInput> &
  Omit<Partial<CreateProcessingJobCommandInput>, 'StoppingCondition'>;

/** A job of the simulated SageMaker; times in ms of the virtual clock. */
export interface SimJob {
  name: string;
  kind: 'training' | 'processing';
  request: JobRequest;
  spot: boolean;
  /** The run that it belongs to; undefined for jobs of others. */
  truth: RunTruth | undefined;
  attempt: number;
  /** Where the job starts according to job.json; '' = at the beginning. */
  resumeUri: string;
  /** job.json names no archive although the run has code of its own. @default false */
  lacksCode?: boolean;
  /** What job.json says of the failures before it. */
  failuresBefore?: FailureHistory;
  /** Step to which job.json tells it to roll back, if it is the first attempt with this request. */
  rollsBackTo: number | undefined;
  /** The skipped data according to job.json. */
  skips: readonly Skip[];
  /** Longer than in the scenario if the job has fewer instances than the run file's maximum. */
  secondsPerStep: number;
  status: string;
  secondaryStatus: string;
  failureReason: string | undefined;
  createdAt: SimMs;
  startedAt: SimMs | undefined;
  endedAt: SimMs | undefined;
  deletedAt: SimMs | undefined;
  /** The clusters that it accepts, in order of preference. */
  wanted: readonly (readonly Shape[])[];
  /** The cluster that it has now. */
  held: readonly Shape[] | undefined;
  /** The cluster that it had last. */
  chosen: readonly Shape[] | undefined;
  heldSince: SimMs;
  /** Milliseconds with instances before the current period. */
  heldMs: number;
  /** Since when it waits for instances. */
  pendingSince: SimMs | undefined;
  stepping: Stepping | undefined;
  /** Since when the driver has been running; undefined between its starts. */
  driverSince: SimMs | undefined;
  isHung: boolean;
  silentSince: SimMs | undefined;
  /** Fields that are missing in its heartbeats. */
  missingFields: readonly string[];
  /** What its heartbeats contain instead of what the driver writes. */
  heartbeatContent?: Fault['beats'];
  /** The driver has read a request to save and exit. */
  isLeaveRequested: boolean;
  sparesLeft: number;
  /** When its ranks were restarted in place. */
  restartedAt: SimMs[];
  setAside: { host: string; reason: string }[];
  history: JobView[];
  timers: Set<Scheduled>;
  /** When StopTrainingJob was accepted. */
  stopAt: SimMs | undefined;
  /** The warm pool that it left. */
  pool: WarmPool | undefined;
}

/** Whether the job has not ended and was not deleted. */
export const isLive = (job: Pick<SimJob, 'status' | 'deletedAt'>): boolean =>
  job.deletedAt === undefined && (job.status === 'InProgress' || job.status === 'Stopping');

/** Milliseconds with instances so far: what is billed. */
export const heldMs = (job: SimJob, now: SimMs): number => job.heldMs + (job.held ? now - job.heldSince : 0);

/** Instances of all types together. */
export const shapeCount = (shapes: readonly Shape[]): number => shapes.reduce((sum, { count }) => sum + count, 0);

/** The clusters that a request takes. */
export function wantedShapes(request: SimJob['request']): Shape[][] {
  const cluster = request.ProcessingResources?.ClusterConfig;
  if (cluster) return [[{ instanceType: cluster.InstanceType ?? '', count: cluster.InstanceCount ?? 1 }]];
  const { InstanceGroups, InstanceType, InstanceCount, ...rest } = request.ResourceConfig ?? {};
  const preferences = (rest as { InstancePreferences?: { InstanceType?: string; InstanceCount?: number }[] })
    .InstancePreferences;
  if (preferences) {
    return preferences.map((p) => [
      { instanceType: p.InstanceType ?? '', count: p.InstanceCount ?? InstanceCount ?? 1 },
    ]);
  }
  if (InstanceGroups) {
    return [InstanceGroups.map((g) => ({ instanceType: g.InstanceType ?? '', count: g.InstanceCount ?? 1 }))];
  }
  return [[{ instanceType: InstanceType ?? '', count: InstanceCount ?? 1 }]];
}
