import type { Channel, ResourceConfig } from '@aws-sdk/client-sagemaker';
import { hasLocalNvme } from '../../core/catalog/instances/instances';
import { type ApiCall, page, refuseIf, ServiceError, validationError } from '../wire/api-call';
import type { TrainingRequest } from './training-job';

/** 28 days: StoppingCondition.MaxRuntimeInSeconds, @aws-sdk/client-sagemaker 3.1142.0. */
const MAX_RUNTIME_SECONDS = 2_419_200;

/** Runtime limit of a job that sets none: one day. */
export const DEFAULT_RUNTIME_SECONDS = 86_400;

/**
 * Requests that the service rejects although each field is well formed; its model states these rules only in prose. Source:
 * @aws-sdk/client-sagemaker 3.1142.0, documentation of the fields, retrieved 2026-11-20.
 * @throws ServiceError ValidationException at the first violated rule, like the service
 */
export function requireSaneTrainingRequest(request: TrainingRequest): void {
  requireAlgorithm(request);
  const config = request.ResourceConfig;
  if (!config) throw validationError('ResourceConfig is required for a training job.');
  requireInstances(config, request.EnableManagedSpotTraining === true);
  requireStorage(config);
  requireStoppingCondition(request);
  requireChannels(request.InputDataConfig ?? [], config);
}

function requireAlgorithm({ AlgorithmSpecification: algorithm }: TrainingRequest): void {
  if (!algorithm) throw validationError('AlgorithmSpecification is required for a training job.');
  const { TrainingImage, AlgorithmName } = algorithm;
  refuseIf(
    (TrainingImage === undefined) === (AlgorithmName === undefined),
    'You must specify either TrainingImage or AlgorithmName, and not both.',
  );
}

function requireInstances(config: ResourceConfig, spot: boolean): void {
  refuseIf(
    config.SelectedInstanceType !== undefined || config.SelectedInstanceCount !== undefined,
    'SelectedInstanceType and SelectedInstanceCount cannot be set in a request.',
  );
  const forms = [config.InstanceType, config.InstanceGroups?.length, config.InstancePreferences?.length].filter(
    Boolean,
  );
  refuseIf(
    forms.length !== 1,
    'Specify exactly one of InstanceType, InstanceGroups and InstancePreferences in ResourceConfig.',
  );
  refuseIf(
    config.InstanceType && config.InstanceCount === undefined,
    'InstanceCount is required together with InstanceType.',
  );
  refuseIf(
    config.InstanceGroups && config.InstanceCount !== undefined,
    'InstanceCount cannot be set together with InstanceGroups.',
  );
  if (config.InstancePreferences) requirePreferences(config, spot);
  refuseIf(
    config.KeepAlivePeriodInSeconds && (spot || config.InstanceGroups),
    'KeepAlivePeriodInSeconds is not supported with managed spot training or instance groups.',
  );
}

function requirePreferences(config: ResourceConfig, spot: boolean): void {
  refuseIf(
    spot || config.InstancePlacementConfig,
    'InstancePreferences cannot be used with EnableManagedSpotTraining or InstancePlacementConfig.',
  );
  const preferences = config.InstancePreferences ?? [];
  const counted = preferences.filter((p) => p.InstanceCount !== undefined).length;
  const once = config.InstanceCount !== undefined;
  refuseIf(
    once ? counted > 0 : counted !== preferences.length,
    'Set InstanceCount either on every InstancePreference or once in ResourceConfig.',
  );
  refuseIf(
    config.TrainingPlanArn && preferences.some((p) => p.TrainingPlanArns),
    'TrainingPlanArn cannot be set together with TrainingPlanArns of an InstancePreference.',
  );
}

function requireStorage(config: ResourceConfig): void {
  const types = instanceTypesOf(config);
  const onInstance = types.filter(hasLocalNvme);
  refuseIf(
    config.VolumeKmsKeyId && onInstance.length > 0,
    `VolumeKmsKeyId is not supported for instance type ${onInstance[0]}, which uses local storage.`,
  );
  refuseIf(
    config.VolumeSizeInGB === undefined && onInstance.length < types.length,
    'VolumeSizeInGB is required for instance types without local storage.',
  );
}

/** Every instance type a ResourceConfig names. */
export function instanceTypesOf(config: ResourceConfig): string[] {
  const named = [
    config.InstanceType,
    ...[...(config.InstanceGroups ?? []), ...(config.InstancePreferences ?? [])].map((g) => g.InstanceType),
  ];
  return named.filter((type): type is NonNullable<typeof type> => type !== undefined);
}

function requireStoppingCondition(request: TrainingRequest): void {
  const condition = request.StoppingCondition;
  if (!condition) throw validationError('StoppingCondition is required for a training job.');
  const runtime = condition.MaxRuntimeInSeconds ?? DEFAULT_RUNTIME_SECONDS;
  refuseIf(
    runtime > MAX_RUNTIME_SECONDS,
    `MaxRuntimeInSeconds must be at most ${MAX_RUNTIME_SECONDS}, got ${runtime}.`,
  );
  const wait = condition.MaxWaitTimeInSeconds;
  refuseIf(
    request.EnableManagedSpotTraining && wait === undefined,
    'MaxWaitTimeInSeconds is required when EnableManagedSpotTraining is true.',
  );
  refuseIf(
    wait !== undefined && !request.EnableManagedSpotTraining && !request.RetryStrategy,
    'MaxWaitTimeInSeconds is only supported with EnableManagedSpotTraining or RetryStrategy.',
  );
  refuseIf(
    wait !== undefined && wait < runtime,
    `Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds (${runtime}).`,
  );
}

function requireChannels(channels: readonly Channel[], config: ResourceConfig): void {
  const names = channels.map((channel) => channel.ChannelName);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  refuseIf(twice !== undefined, `Duplicate channel name '${twice}' in InputDataConfig.`);
  for (const channel of channels) requireDataSource(channel);
  const grouped = channels.filter((c) => c.DataSource?.S3DataSource?.InstanceGroupNames?.length).length;
  const s3 = channels.filter((c) => c.DataSource?.S3DataSource).length;
  refuseIf(
    grouped > 0 && (!config.InstanceGroups || grouped !== s3),
    'InstanceGroupNames must be set for every channel or for none, and needs InstanceGroups.',
  );
}

function requireDataSource(channel: Channel): void {
  const source = channel.DataSource;
  const sources = [source?.S3DataSource, source?.FileSystemDataSource, source?.DatasetSource].filter(Boolean);
  refuseIf(sources.length !== 1, `Channel '${channel.ChannelName}' must have exactly one data source.`);
  const type = source?.S3DataSource?.S3DataType;
  refuseIf(
    channel.InputMode === 'FastFile' && type !== undefined && type !== 'S3Prefix',
    `Channel '${channel.ChannelName}': input mode FastFile supports S3DataType S3Prefix only.`,
  );
}

interface Tag {
  Key: string;
  Value: string;
}

interface Tagged {
  arn: string;
  account: string;
  region: string;
  tags: Record<string, string>;
}

const MAX_TAGS = 50;
const DEFAULT_PAGE = 50;

export function tagMap(tags: readonly Tag[] = []): Record<string, string> {
  return Object.fromEntries(tags.map(({ Key, Value }) => [Key, Value]));
}

/** AddTags, ListTags and DeleteTags for all resources of the sandbox. */
export class TagOperations {
  readonly operations: Readonly<Record<string, (call: ApiCall) => unknown>> = {
    AddTags: (call) => {
      const resource = this.require(call);
      const merged = { ...resource.tags, ...tagMap(call.input.Tags as Tag[]) };
      refuseIf(Object.keys(merged).length > MAX_TAGS, `A resource cannot have more than ${MAX_TAGS} tags.`);
      resource.tags = merged;
      return { Tags: tagList(merged) };
    },
    ListTags: (call) => {
      const { items, nextToken } = page(tagList(this.require(call).tags), call.input, DEFAULT_PAGE);
      return { Tags: items, NextToken: nextToken };
    },
    DeleteTags: (call) => {
      const resource = this.require(call);
      const gone = new Set(call.input.TagKeys as string[]);
      resource.tags = Object.fromEntries(Object.entries(resource.tags).filter(([key]) => !gone.has(key)));
      return {};
    },
  };

  constructor(private readonly find: (arn: string) => Tagged | undefined) {}

  private require(call: ApiCall): Tagged {
    const resource = this.find(String(call.input.ResourceArn));
    if (!resource || resource.account !== call.account || resource.region !== call.region) {
      throw new ServiceError('ValidationException', 'Requested resource not found.');
    }
    return resource;
  }
}

const tagList = (tags: Record<string, string>): Tag[] => Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
