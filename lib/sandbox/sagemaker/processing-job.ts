import type { CreateProcessingJobCommandInput, ProcessingJobStatus } from '@aws-sdk/client-sagemaker';
import type { Cluster } from '../jobs/cluster';
import { seconds, selected, text } from './describe-training';

/** The request as the service stores it; tags are stored separately. */
export type ProcessingRequest = Omit<CreateProcessingJobCommandInput, 'Tags'>;

/** State of a processing job. Times are milliseconds since the epoch. */
export interface ProcessingJob {
  account: string;
  region: string;
  name: string;
  arn: string;
  request: ProcessingRequest;
  tags: Record<string, string>;
  status: ProcessingJobStatus;
  cluster?: Cluster;
  createdAt: number;
  modifiedAt: number;
  startedAt?: number;
  endedAt?: number;
  failureReason?: string;
  exitMessage?: string;
}

/** The cluster of a request; the service's model has ensured that it is present. */
export const clusterConfig = (request: ProcessingRequest) =>
  request.ProcessingResources?.ClusterConfig ?? { VolumeSizeInGB: 0 };

/** A job that was just accepted. */
export function newProcessingJob(
  place: { account: string; region: string; partition: string },
  request: ProcessingRequest,
  tags: Record<string, string>,
  now: number,
): ProcessingJob {
  const { account, region, partition } = place;
  const name = request.ProcessingJobName ?? '';
  const arn = `arn:${partition}:sagemaker:${region}:${account}:processing-job/${name.toLowerCase()}`;
  return { account, region, name, arn, request, tags, status: 'InProgress', createdAt: now, modifiedAt: now };
}

/** The answer of DescribeProcessingJob. */
export function describeProcessingJob(job: ProcessingJob): object {
  const { ProcessingResources, ...request } = job.request;
  const config = ProcessingResources?.ClusterConfig;
  return {
    ...request,
    ProcessingResources: { ClusterConfig: { ...config, ...selected(config, job.cluster) } },
    ...state(job),
    ProcessingStartTime: seconds(job.startedAt),
    ProcessingEndTime: seconds(job.endedAt),
    LastModifiedTime: seconds(job.modifiedAt),
    CreationTime: seconds(job.createdAt),
  };
}

/** One entry of ListProcessingJobs. */
export function processingJobSummary(job: ProcessingJob): object {
  return {
    ProcessingJobName: job.name,
    ...state(job),
    CreationTime: seconds(job.createdAt),
    ProcessingEndTime: seconds(job.endedAt),
    LastModifiedTime: seconds(job.modifiedAt),
  };
}

/** `detail` of the event for a change of state. */
export function processingEventDetail(job: ProcessingJob): object {
  return {
    ...job.request,
    ...state(job),
    CreationTime: text(job.createdAt),
    ProcessingStartTime: text(job.startedAt),
    ProcessingEndTime: text(job.endedAt),
    LastModifiedTime: text(job.modifiedAt),
    Tags: job.tags,
  };
}

const state = (job: ProcessingJob) => ({
  ProcessingJobArn: job.arn,
  ProcessingJobStatus: job.status,
  FailureReason: job.failureReason,
  ExitMessage: job.exitMessage,
});
