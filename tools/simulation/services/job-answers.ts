import type { DescribeTrainingJobResponse } from '@aws-sdk/client-sagemaker';
import type { SimMs } from '../core/clock';
import { dateAt } from '../core/epoch';
import type { JobView, SimJob } from '../job/job';
import { keptMs } from '../job/warm-pools';

/** A job as a read returns it. */
export interface SeenJob {
  job: SimJob;
  view: JobView;
}

/** Answer of DescribeTrainingJob. */
export const describedTrainingJob = ({ job, view }: SeenJob, arn: string, now: SimMs): object => ({
  ...job.request,
  Tags: undefined,
  ResourceConfig: { ...job.request.ResourceConfig, ...selected(job, view) },
  TrainingJobName: job.name,
  TrainingJobArn: arn,
  TrainingJobStatus: view.status,
  SecondaryStatus: view.secondaryStatus,
  FailureReason: view.failureReason,
  CreationTime: dateAt(job.createdAt),
  LastModifiedTime: dateAt(view.at),
  TrainingStartTime: dateOf(view.startedAt),
  TrainingEndTime: dateOf(view.endedAt),
  TrainingTimeInSeconds: view.trainingSeconds,
  BillableTimeInSeconds: view.billableSeconds,
  WarmPoolStatus: warmPoolStatus(job, now),
  SecondaryStatusTransitions: job.history
    .filter(({ at }) => at <= view.at)
    .map(({ at, secondaryStatus }) => ({ Status: secondaryStatus, StartTime: dateAt(at) })),
  FinalMetricDataList:
    job.truth?.showsSteps && view.finalStep !== undefined
      ? [{ MetricName: 'slipway:step', Value: view.finalStep, Timestamp: dateAt(view.at) }]
      : [],
  $metadata: {},
});

/** Answer of DescribeProcessingJob. */
export const describedProcessingJob = ({ job, view }: SeenJob, arn: string): object => ({
  ...job.request,
  Tags: undefined,
  ProcessingJobName: job.name,
  ProcessingJobArn: arn,
  ProcessingJobStatus: view.status,
  FailureReason: view.failureReason,
  CreationTime: dateAt(job.createdAt),
  ProcessingStartTime: dateOf(view.startedAt),
  ProcessingEndTime: dateOf(view.endedAt),
  $metadata: {},
});

/** Its entry in an answer of ListTrainingJobs. */
export const trainingJobSummary = ({ job, view }: SeenJob, arn: string): object => ({
  TrainingJobName: job.name,
  TrainingJobArn: arn,
  CreationTime: dateAt(job.createdAt),
  LastModifiedTime: dateAt(view.at),
  TrainingEndTime: dateOf(view.endedAt),
  TrainingJobStatus: view.status,
  SecondaryStatus: view.secondaryStatus,
});

/** Its entry in an answer of ListProcessingJobs. */
export const processingJobSummary = ({ job, view }: SeenJob, arn: string): object => ({
  ProcessingJobName: job.name,
  ProcessingJobArn: arn,
  CreationTime: dateAt(job.createdAt),
  ProcessingJobStatus: view.status,
});

/** `InUse` is left out: callers only read the status of jobs that are over. */
function warmPoolStatus(job: SimJob, now: SimMs): DescribeTrainingJobResponse['WarmPoolStatus'] {
  const { pool } = job;
  if (!pool) return undefined;
  return {
    Status: pool.endedAt === undefined ? 'Available' : pool.reusedBy === undefined ? 'Terminated' : 'Reused',
    ...(pool.endedAt !== undefined && { ResourceRetainedBillableTimeInSeconds: Math.round(keptMs(job, now) / 1000) }),
    ...(pool.reusedBy !== undefined && { ReusedByJob: pool.reusedBy }),
  };
}

const dateOf = (at: SimMs | undefined): Date | undefined => (at === undefined ? undefined : dateAt(at));

/** Which of several instance types it got. */
function selected(job: SimJob, { shapes }: JobView): Record<string, unknown> {
  const [shape] = shapes ?? [];
  if (job.wanted.length < 2 || !shape) return {};
  return { SelectedInstanceType: shape.instanceType, SelectedInstanceCount: shape.count };
}
