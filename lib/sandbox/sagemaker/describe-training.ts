import type { Cluster } from '../jobs/cluster';
import { isTerminal, type StoredJob } from './job-store';
import { type TrainingJob, usedMsUntil } from './training-job';

export const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1000);
export const text = (ms: number | undefined) => (ms === undefined ? undefined : String(ms));

/** The times of a job in answers and events. */
export const timesOf = (kind: 'Training' | 'Processing', job: StoredJob, time: typeof seconds | typeof text) => ({
  CreationTime: time(job.createdAt),
  [`${kind}StartTime`]: time(job.startedAt),
  [`${kind}EndTime`]: time(job.endedAt),
  LastModifiedTime: time(job.modifiedAt),
});

function modelArtifacts(job: TrainingJob): string {
  const output = job.request.OutputDataConfig;
  const base = `${(output?.S3OutputPath ?? '').replace(/\/$/, '')}/${job.name}/output`;
  return output?.CompressionType === 'NONE' ? `${base}/model/` : `${base}/model.tar.gz`;
}

/**
 * The answer of DescribeTrainingJob: the request, without tags and session chaining, and the state.
 * @param aheadSeconds how far the service's clock is ahead (fault `clock-skew`)
 */
export function describeTrainingJob(job: TrainingJob, now: number, aheadSeconds = 0): object {
  const time = (ms: number | undefined) => seconds(ms === undefined ? undefined : ms + 1000 * aheadSeconds);
  const { SessionChainingConfig: _, ResourceConfig, ...request } = job.request;
  const used = Math.round(usedMsUntil(job, now) / 1000);
  return {
    ...request,
    ResourceConfig: { ...ResourceConfig, ...selected(ResourceConfig, job.cluster) },
    TrainingJobArn: job.arn,
    ModelArtifacts: { S3ModelArtifacts: modelArtifacts(job) },
    TrainingJobStatus: job.status,
    SecondaryStatus: job.secondaryStatus,
    SecondaryStatusTransitions: transitions(job, time),
    FailureReason: job.failureReason,
    ...timesOf('Training', job, time),
    TrainingTimeInSeconds: job.startedAt === undefined ? undefined : used,
    BillableTimeInSeconds: job.startedAt !== undefined && isTerminal(job) ? used : undefined,
    WarmPoolStatus: warmPoolStatus(job),
    FinalMetricDataList: metrics(job),
    ProfilingStatus: job.request.ProfilerConfig && !job.request.ProfilerConfig.DisableProfiler ? 'Enabled' : 'Disabled',
  };
}

/** The instance preference on which a job runs. */
export const selected = (config: { InstancePreferences?: object } | undefined, cluster: Cluster | undefined) =>
  config?.InstancePreferences &&
  cluster && { SelectedInstanceType: cluster.instanceType, SelectedInstanceCount: cluster.instanceCount };

const transitions = (job: TrainingJob, time: typeof seconds | typeof text) =>
  job.transitions.map(({ status, startedAt, endedAt, message }) => ({
    Status: status,
    StartTime: time(startedAt),
    EndTime: time(endedAt),
    StatusMessage: message,
  }));

function metrics(job: TrainingJob) {
  const list = Object.entries(job.finalMetrics).map(([MetricName, { value, at }]) => ({
    MetricName,
    Value: value,
    Timestamp: at / 1000,
  }));
  return list.length > 0 ? list : undefined;
}

/** WarmPoolStatus in answers of Describe and List. */
function warmPoolStatus(job: TrainingJob): object | undefined {
  const pool = job.warmPool;
  if (!pool) return undefined;
  return {
    Status: pool.status,
    ReusedByJob: pool.reusedBy,
    ResourceRetainedBillableTimeInSeconds: pool.retainedSeconds,
  };
}

/** One entry of ListTrainingJobs: without instance type and count, as in the service. */
export function trainingJobSummary(job: TrainingJob): object {
  return {
    TrainingJobName: job.name,
    TrainingJobArn: job.arn,
    CreationTime: seconds(job.createdAt),
    TrainingEndTime: seconds(job.endedAt),
    LastModifiedTime: seconds(job.modifiedAt),
    TrainingJobStatus: job.status,
    SecondaryStatus: job.secondaryStatus,
    WarmPoolStatus: warmPoolStatus(job),
    TrainingPlanArn: job.request.ResourceConfig?.TrainingPlanArn,
  };
}

/** `detail` of the event that SageMaker sends when a job changes its state: times are strings of epoch milliseconds, tags an object. */
export function trainingEventDetail(job: TrainingJob): object {
  const { request } = job;
  return {
    TrainingJobName: job.name,
    TrainingJobArn: job.arn,
    TrainingJobStatus: job.status,
    SecondaryStatus: job.secondaryStatus,
    HyperParameters: request.HyperParameters,
    AlgorithmSpecification: request.AlgorithmSpecification,
    RoleArn: request.RoleArn,
    InputDataConfig: request.InputDataConfig,
    OutputDataConfig: request.OutputDataConfig,
    ResourceConfig: request.ResourceConfig,
    VpcConfig: request.VpcConfig,
    StoppingCondition: request.StoppingCondition,
    ...timesOf('Training', job, text),
    SecondaryStatusTransitions: transitions(job, text),
    FailureReason: job.failureReason,
    Tags: job.tags,
  };
}
