import type { CreateProcessingJobCommandInput, ProcessingJobStatus } from '@aws-sdk/client-sagemaker';
import { seconds, selected, text, timesOf } from './describe-training';
import type { StoredJob } from './job-store';

/** The request as the service stores it; tags are stored separately. */
export type ProcessingRequest = Omit<CreateProcessingJobCommandInput, 'Tags'>;

export interface ProcessingJob extends StoredJob<ProcessingRequest, ProcessingJobStatus> {
  exitMessage?: string;
}

/** The cluster of a request; the service's model has ensured that it is present. */
export const clusterConfig = (request: ProcessingRequest) =>
  request.ProcessingResources?.ClusterConfig ?? { VolumeSizeInGB: 0 };

export function describeProcessingJob(job: ProcessingJob): object {
  const { ProcessingResources, ...request } = job.request;
  const config = ProcessingResources?.ClusterConfig;
  return {
    ...request,
    ProcessingResources: { ClusterConfig: { ...config, ...selected(config, job.cluster) } },
    ...state(job),
    ...timesOf('Processing', job, seconds),
  };
}

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
    ...timesOf('Processing', job, text),
    Tags: job.tags,
  };
}

const state = (job: ProcessingJob) => ({
  ProcessingJobArn: job.arn,
  ProcessingJobStatus: job.status,
  FailureReason: job.failureReason,
  ExitMessage: job.exitMessage,
});
