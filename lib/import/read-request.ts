import type { CreateTrainingJobCommandInput } from '@aws-sdk/client-sagemaker';

/**
 * Members of CreateTrainingJob (botocore 1.44.5). DescribeTrainingJob answers with the same ones, beside what happened to the job.
 * https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html, 2026-11-22.
 */
const MEMBERS = [
  'TrainingJobName',
  'HyperParameters',
  'AlgorithmSpecification',
  'RoleArn',
  'InputDataConfig',
  'OutputDataConfig',
  'ResourceConfig',
  'VpcConfig',
  'StoppingCondition',
  'Tags',
  'EnableNetworkIsolation',
  'EnableInterContainerTrafficEncryption',
  'EnableManagedSpotTraining',
  'CheckpointConfig',
  'DebugHookConfig',
  'DebugRuleConfigurations',
  'TensorBoardOutputConfig',
  'ExperimentConfig',
  'ProfilerConfig',
  'ProfilerRuleConfigurations',
  'Environment',
  'RetryStrategy',
  'RemoteDebugConfig',
  'InfraCheckConfig',
  'SessionChainingConfig',
  'ServerlessJobConfig',
  'MlflowConfig',
  'ModelPackageConfig',
];

/** What DescribeTrainingJob adds to ResourceConfig. */
const RESULTS_OF_RESOURCES = ['SelectedInstanceType', 'SelectedInstanceCount'];

type Fields = Record<string, unknown>;

/** A CreateTrainingJob request as somebody else wrote it: every member may be absent. */
export type ForeignRequest = Partial<CreateTrainingJobCommandInput>;

/** Whether the value is a JSON object, not a list. */
export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The request in a document: the request itself, the answer of DescribeTrainingJob, or one of them inside an object with one key, as
 * tools that record calls write it. Undefined where there is none.
 */
export function findRequest(document: unknown): ForeignRequest | undefined {
  if (!isObject(document)) return undefined;
  if (isObject(document.AlgorithmSpecification) || isObject(document.ResourceConfig)) return requestOf(document);
  const inner = Object.values(document).filter(isObject);
  const found = inner.map(findRequest).filter((request) => request !== undefined);
  return found.length === 1 ? found[0] : undefined;
}

function requestOf(document: Fields): ForeignRequest {
  const members = MEMBERS.filter((name) => document[name] !== undefined && document[name] !== null);
  const request = Object.fromEntries(members.map((name) => [name, document[name]]));
  if (isObject(request.ResourceConfig)) {
    const kept = Object.entries(request.ResourceConfig).filter(([key]) => !RESULTS_OF_RESOURCES.includes(key));
    request.ResourceConfig = Object.fromEntries(kept);
  }
  return request as ForeignRequest;
}
