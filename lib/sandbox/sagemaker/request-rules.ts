import type { Channel, ResourceConfig, StoppingCondition } from '@aws-sdk/client-sagemaker';
import { hasLocalNvme } from '../../core/catalog/instances/instances';
import { type ApiCall, page, refuseIf, validationError } from '../wire/api-call';
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
  const { AlgorithmSpecification: algorithm, ResourceConfig: config, StoppingCondition: condition } = request;
  if (!algorithm) throw validationError('AlgorithmSpecification is required for a training job.');
  refuseFirst({
    'You must specify either TrainingImage or AlgorithmName, and not both.':
      (algorithm.TrainingImage === undefined) === (algorithm.AlgorithmName === undefined),
  });
  if (!config) throw validationError('ResourceConfig is required for a training job.');
  const spot = request.EnableManagedSpotTraining === true;
  refuseFirst(instanceRules(config, spot));
  refuseFirst(storageRules(config));
  if (!condition) throw validationError('StoppingCondition is required for a training job.');
  refuseFirst(stoppingRules(condition, spot, Boolean(request.RetryStrategy)));
  requireChannels(request.InputDataConfig ?? [], config);
}

/** Messages, each with the condition under which it applies; the first one that does is thrown. */
type Refusals = Readonly<Record<string, unknown>>;

function refuseFirst(refusals: Refusals): void {
  for (const [message, applies] of Object.entries(refusals)) refuseIf(applies, message);
}

function instanceRules(config: ResourceConfig, spot: boolean): Refusals {
  const { InstanceCount: count, InstanceGroups: groups, InstancePreferences: preferences } = config;
  const forms = [config.InstanceType, groups?.length, preferences?.length].filter(Boolean);
  const counted = preferences?.filter((p) => p.InstanceCount !== undefined).length ?? 0;
  return {
    'SelectedInstanceType and SelectedInstanceCount cannot be set in a request.':
      config.SelectedInstanceType !== undefined || config.SelectedInstanceCount !== undefined,
    'Specify exactly one of InstanceType, InstanceGroups and InstancePreferences in ResourceConfig.':
      forms.length !== 1,
    'InstanceCount is required together with InstanceType.': config.InstanceType && count === undefined,
    'InstanceCount cannot be set together with InstanceGroups.': groups && count !== undefined,
    'InstancePreferences cannot be used with EnableManagedSpotTraining or InstancePlacementConfig.':
      preferences && (spot || config.InstancePlacementConfig),
    'Set InstanceCount either on every InstancePreference or once in ResourceConfig.':
      preferences && (count === undefined ? counted !== preferences.length : counted > 0),
    'TrainingPlanArn cannot be set together with TrainingPlanArns of an InstancePreference.':
      config.TrainingPlanArn && preferences?.some((p) => p.TrainingPlanArns),
    'KeepAlivePeriodInSeconds is not supported with managed spot training or instance groups.':
      config.KeepAlivePeriodInSeconds && (spot || groups),
  };
}

function storageRules(config: ResourceConfig): Refusals {
  const types = instanceTypesOf(config);
  const onInstance = types.filter(hasLocalNvme);
  return {
    [`VolumeKmsKeyId is not supported for instance type ${onInstance[0]}, which uses local storage.`]:
      config.VolumeKmsKeyId && onInstance.length > 0,
    'VolumeSizeInGB is required for instance types without local storage.':
      config.VolumeSizeInGB === undefined && onInstance.length < types.length,
  };
}

/** Every instance type a ResourceConfig names. */
export function instanceTypesOf(config: ResourceConfig): string[] {
  const several = [...(config.InstanceGroups ?? []), ...(config.InstancePreferences ?? [])];
  return [config, ...several].flatMap(({ InstanceType }) => InstanceType ?? []);
}

function stoppingRules(condition: StoppingCondition, spot: boolean, retries: boolean): Refusals {
  const { MaxRuntimeInSeconds: runtime = DEFAULT_RUNTIME_SECONDS, MaxWaitTimeInSeconds: wait } = condition;
  return {
    [`MaxRuntimeInSeconds must be at most ${MAX_RUNTIME_SECONDS}, got ${runtime}.`]: runtime > MAX_RUNTIME_SECONDS,
    'MaxWaitTimeInSeconds is required when EnableManagedSpotTraining is true.': spot && wait === undefined,
    'MaxWaitTimeInSeconds is only supported with EnableManagedSpotTraining or RetryStrategy.':
      wait !== undefined && !spot && !retries,
    [`Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds (${runtime}).`]:
      wait !== undefined && wait < runtime,
  };
}

function requireChannels(channels: readonly Channel[], config: ResourceConfig): void {
  const names = channels.map((channel) => channel.ChannelName);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  refuseIf(twice !== undefined, `Duplicate channel name '${twice}' in InputDataConfig.`);
  for (const channel of channels) refuseFirst(sourceRules(channel));
  const grouped = channels.filter((c) => c.DataSource?.S3DataSource?.InstanceGroupNames?.length).length;
  const s3 = channels.filter((c) => c.DataSource?.S3DataSource).length;
  refuseIf(
    grouped > 0 && (!config.InstanceGroups || grouped !== s3),
    'InstanceGroupNames must be set for every channel or for none, and needs InstanceGroups.',
  );
}

function sourceRules({ ChannelName: name, DataSource: source, InputMode: mode }: Channel): Refusals {
  const sources = [source?.S3DataSource, source?.FileSystemDataSource, source?.DatasetSource].filter(Boolean);
  const type = source?.S3DataSource?.S3DataType;
  return {
    [`Channel '${name}' must have exactly one data source.`]: sources.length !== 1,
    [`Channel '${name}': input mode FastFile supports S3DataType S3Prefix only.`]:
      mode === 'FastFile' && type !== undefined && type !== 'S3Prefix',
  };
}

export interface Tag {
  Key: string;
  Value: string;
}

interface Tagged {
  account: string;
  region: string;
  tags: Record<string, string>;
}

const MAX_TAGS = 50;
const DEFAULT_PAGE = 50;

export function tagMap(tags: readonly Tag[] = []): Record<string, string> {
  return Object.fromEntries(tags.map(({ Key, Value }) => [Key, Value]));
}

/** AddTags, ListTags and DeleteTags for all resources of the sandbox, which `find` finds by their ARNs. */
export function tagOperations(find: (arn: string) => Tagged | undefined) {
  const given = (call: ApiCall): Tagged => {
    const resource = find(String(call.input.ResourceArn));
    if (resource?.account === call.account && resource.region === call.region) return resource;
    throw validationError('Requested resource not found.');
  };
  return {
    AddTags: (call: ApiCall) => {
      const resource = given(call);
      const merged = { ...resource.tags, ...tagMap(call.input.Tags as Tag[]) };
      refuseIf(Object.keys(merged).length > MAX_TAGS, `A resource cannot have more than ${MAX_TAGS} tags.`);
      resource.tags = merged;
      return { Tags: tagList(merged) };
    },
    ListTags: (call: ApiCall) => {
      const { items, nextToken } = page(tagList(given(call).tags), call.input, DEFAULT_PAGE);
      return { Tags: items, NextToken: nextToken };
    },
    DeleteTags: (call: ApiCall) => {
      const resource = given(call);
      const gone = new Set(call.input.TagKeys as string[]);
      resource.tags = Object.fromEntries(Object.entries(resource.tags).filter(([key]) => !gone.has(key)));
      return {};
    },
  };
}

const tagList = (tags: Record<string, string>): Tag[] => Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
