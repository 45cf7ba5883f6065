import type { CreateTrainingJobCommandInput } from '@aws-sdk/client-sagemaker';
import { type Draft, isObject } from './rows';

/**
 * Members of a DescribeTrainingJob response that are not in CreateTrainingJob (botocore 1.44.5).
 * https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingJob.html, 2026-11-23.
 */
const RESULTS = [
  'TrainingJobArn',
  'TuningJobArn',
  'LabelingJobArn',
  'AutoMLJobArn',
  'ModelArtifacts',
  'TrainingJobStatus',
  'SecondaryStatus',
  'FailureReason',
  'WarmPoolStatus',
  'CreationTime',
  'TrainingStartTime',
  'TrainingEndTime',
  'LastModifiedTime',
  'SecondaryStatusTransitions',
  'FinalMetricDataList',
  'TrainingTimeInSeconds',
  'BillableTimeInSeconds',
  'BillableTokenCount',
  'DebugRuleEvaluationStatuses',
  'ProfilerRuleEvaluationStatuses',
  'ProfilingStatus',
  'MlflowDetails',
  'ProgressInfo',
  'OutputModelPackageArn',
  // Added to responses by the SDKs.
  'ResponseMetadata',
  '$metadata',
];

/** Members that DescribeTrainingJob adds to ResourceConfig. */
const RESULTS_OF_RESOURCES = ['SelectedInstanceType', 'SelectedInstanceCount'];

/** A CreateTrainingJob request from an external source: every member may be absent. */
export type ForeignRequest = Partial<CreateTrainingJobCommandInput>;

/**
 * The request in a document: the request itself, the response of DescribeTrainingJob, or one of them in an object with a single key, as
 * written by tools that record calls. Undefined when there is none.
 */
export function findRequest(document: unknown): ForeignRequest | undefined {
  if (!isObject(document)) return undefined;
  if (isObject(document.AlgorithmSpecification) || isObject(document.ResourceConfig)) return requestOf(document);
  const inner = Object.values(document).filter(isObject);
  const found = inner.map(findRequest).filter((request) => request !== undefined);
  return found.length === 1 ? found[0] : undefined;
}

/** Removes the results of the job; unknown members are kept and reported as not imported. */
function requestOf(document: Draft): ForeignRequest {
  const request = withoutKeys(document, RESULTS);
  if (isObject(request.ResourceConfig))
    request.ResourceConfig = withoutKeys(request.ResourceConfig, RESULTS_OF_RESOURCES);
  return request as ForeignRequest;
}

/** Removes keys and absent values. */
export const withoutKeys = (fields: Draft, keys: readonly string[]): Draft =>
  Object.fromEntries(
    Object.entries(fields).filter(([key, value]) => value !== undefined && value !== null && !keys.includes(key)),
  );

/** Sets the input mode on each channel; the default is that of the job. File systems have none. */
export function withInputModes(request: ForeignRequest): ForeignRequest {
  const { TrainingInputMode: mode = 'File', ...algorithm } = request.AlgorithmSpecification ?? {};
  return {
    ...request,
    AlgorithmSpecification: algorithm as ForeignRequest['AlgorithmSpecification'],
    InputDataConfig: request.InputDataConfig?.map((channel) =>
      channel.DataSource?.S3DataSource ? { InputMode: mode, ...channel } : { ...channel, InputMode: undefined },
    ),
  };
}
