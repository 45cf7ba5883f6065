import {
  dlcImageUri,
  HUGGING_FACE_IMAGES,
  huggingFaceImageUri,
  neuronImageUri,
  smpImageUri,
} from '../../core/catalog/images/images';
import { hasLocalNvme } from '../../core/catalog/instances/instances';
import { CODE_IN_IMAGE } from '../../core/config/code-source';
import { type ForeignRequest, withInputModes, withoutKeys } from './read-request';
import {
  convert,
  type Draft,
  type Drafted,
  each,
  filled,
  type Read,
  type Rows,
  runName,
  unless,
  valueAt,
  when,
} from './rows';
import { startOf, TRAINER_CHANNEL, type TrainerFiles } from './start';

/** The service's default limit. https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_StoppingCondition.html, 2026-11-22. */
const SERVICE_RUNTIME_SECONDS = 86_400;
/** Channels that tools add to a job: Slipway, and the SageMaker Python SDK v2 and v3. */
const TOOL_CHANNELS = ['driver', 'job', 'weights', 'code', TRAINER_CHANNEL];

/** Keeps the items of a list of which a text does not match. */
const without = (list: unknown, member: string, pattern: RegExp): unknown[] =>
  Array.isArray(list) ? list.filter((item) => !pattern.test(String(valueAt(item, member) ?? ''))) : [];

const tags = (list: unknown) =>
  Object.fromEntries(
    without(list, 'Key', /^(slipway|aws):/).map((tag) => [valueAt(tag, 'Key'), valueAt(tag, 'Value') ?? '']),
  );

const FILE_SYSTEM: Rows = {
  fileSystemId: 'FileSystemId',
  directoryPath: 'DirectoryPath',
  access: ['FileSystemAccessMode', when('rw', 'rw')],
};
const fileSystem =
  (type: string): Read =>
  (source) =>
    valueAt(source, 'FileSystemType') === type ? convert(FILE_SYSTEM, source) : undefined;

const S3 = 'DataSource.S3DataSource';
const CHANNEL: Rows = {
  channel: 'ChannelName',
  efs: ['DataSource.FileSystemDataSource', fileSystem('EFS')],
  fsxLustre: ['DataSource.FileSystemDataSource', fileSystem('FSxLustre')],
  s3: `${S3}.S3Uri`,
  inputMode: ['InputMode', unless('File')],
  s3DataType: [`${S3}.S3DataType`, unless('S3Prefix')],
  s3DataDistribution: [`${S3}.S3DataDistributionType`, unless('FullyReplicated')],
  attributeNames: `${S3}.AttributeNames`,
  instanceGroups: `${S3}.InstanceGroupNames`,
  shuffleSeed: 'ShuffleConfig.Seed',
  contentType: 'ContentType',
};
const INSTANCES = { instanceType: 'InstanceType', instanceCount: 'InstanceCount' };
const INSTANCE_GROUP = { name: 'InstanceGroupName', ...INSTANCES };
const ALTERNATIVE = { ...INSTANCES, trainingPlanArn: 'TrainingPlanArns.0' };
const ULTRA_SERVER = { id: 'UltraServerId', instanceCount: 'InstanceCount' };
const METRIC = { name: 'Name', regex: 'Regex' };
const CHECKPOINTS: Rows = { mode: ['S3Uri', () => 'managed'], s3: 'S3Uri', localPath: 'LocalPath' };
const MLFLOW = { arn: 'MlflowResourceArn', experiment: 'MlflowExperimentName' };

/** A member of ResourceConfig, or of the preferred one of its alternatives. */
const ofInstances =
  (member: string): Read =>
  (config) =>
    valueAt(config, member) ?? valueAt(config, `InstancePreferences.0.${member}`);

const RESOURCES = 'ResourceConfig';
const PLACEMENT = `${RESOURCES}.InstancePlacementConfig`;
const STOPPING = 'StoppingCondition';
/** What a run file and a request both express, except for the program and its image. */
const REQUEST: Rows = {
  name: ['TrainingJobName', (name) => runName(String(name ?? 'imported'))],
  tags: ['Tags', tags],
  'compute.instanceType': [RESOURCES, ofInstances('InstanceType')],
  'compute.instanceCount': [RESOURCES, ofInstances('InstanceCount')],
  'compute.instanceGroups': [`${RESOURCES}.InstanceGroups`, each(INSTANCE_GROUP)],
  'compute.alternatives': [`${RESOURCES}.InstancePreferences`, (list) => each(ALTERNATIVE)([list].flat().slice(1))],
  'compute.capacity': ['EnableManagedSpotTraining', when(true, 'spot')],
  'compute.trainingPlanArn': `${RESOURCES}.TrainingPlanArn`,
  'compute.volumeSizeGiB': `${RESOURCES}.VolumeSizeInGB`,
  'compute.keepAliveSeconds': `${RESOURCES}.KeepAlivePeriodInSeconds`,
  'compute.infraCheck': 'InfraCheckConfig.EnableInfraCheck',
  'compute.placement.multipleJobs': `${PLACEMENT}.EnableMultipleJobs`,
  'compute.placement.ultraServers': [`${PLACEMENT}.PlacementSpecifications`, each(ULTRA_SERVER)],
  data: ['InputDataConfig', each(CHANNEL)],
  checkpoints: [
    'CheckpointConfig',
    (config) => (valueAt(config, 'S3Uri') ? convert(CHECKPOINTS, config) : { mode: 'none' }),
  ],
  // Without a compression type, the service writes one archive.
  'output.compression': [
    'OutputDataConfig',
    (config) => (config && valueAt(config, 'CompressionType') !== 'NONE' ? 'gzip' : undefined),
  ],
  'limits.maxRuntimeSeconds': [`${STOPPING}.MaxRuntimeInSeconds`, (seconds) => seconds ?? SERVICE_RUNTIME_SECONDS],
  'limits.maxWaitSeconds': `${STOPPING}.MaxWaitTimeInSeconds`,
  'limits.maxPendingSeconds': `${STOPPING}.MaxPendingTimeInSeconds`,
  'limits.retryInternalErrors': 'RetryStrategy.MaximumRetryAttempts',
  'network.isolation': ['EnableNetworkIsolation', when(true, true)],
  'network.interContainerEncryption': ['EnableInterContainerTrafficEncryption', when(true, true)],
  'observability.metrics': [
    'AlgorithmSpecification.MetricDefinitions',
    (list) => each(METRIC)(without(list, 'Name', /^slipway:/)),
  ],
  'observability.profiler': [
    'ProfilerConfig',
    (config) => (valueAt(config, 'S3OutputPath') && !valueAt(config, 'DisableProfiler') ? 'sagemaker' : undefined),
  ],
  'observability.tensorBoard': ['TensorBoardOutputConfig', (config) => (config ? true : undefined)],
  'observability.remoteDebug': ['RemoteDebugConfig.EnableRemoteDebug', when(true, true)],
  'observability.mlflow': [
    'MlflowConfig',
    (config) => (valueAt(config, 'MlflowResourceArn') ? convert(MLFLOW, config) : undefined),
  ],
};

/** The run file from which Slipway would build this request, as far as a run file can express it. */
export function draftOf(request: ForeignRequest, files?: TrainerFiles): Drafted {
  const { draft: start, remarks } = startOf(request, files);
  const { code, distribution, hyperparameters } = start;
  const image = request.AlgorithmSpecification?.TrainingImage;
  const types = typesOf(request);
  const carried = convert(REQUEST, reduced(request, types, valueAt(code, 'source') === CODE_IN_IMAGE));
  const { name, tags, compute = {}, ...others } = carried;
  const set = Object.entries(request.Environment ?? {}).filter(([key]) => !key.startsWith('SLIPWAY_'));
  const imageOptions = image && imageSection(image, regionOfImage(request) ?? '', types[0] ?? '');
  const program = { code, image: imageOptions, compute, distribution };
  const strings = filled({ hyperparameters, environmentVariables: Object.fromEntries(set) });
  return { draft: { ...filled({ name, tags, ...program }), compute, ...others, ...strings }, remarks };
}

/** The request without values that only have a meaning for other instances, and without channels that a tool added for its own program. */
function reduced(given: ForeignRequest, types: readonly string[], isInImage: boolean): ForeignRequest {
  const request = withInputModes(given);
  const meaningless = [
    ...(request.ResourceConfig?.InstanceGroups?.length ? ['InstanceCount'] : []),
    ...(types.some(hasLocalNvme) ? ['VolumeSizeInGB'] : []),
  ];
  return {
    ...request,
    ResourceConfig: withoutKeys({ ...request.ResourceConfig }, meaningless),
    InputDataConfig: request.InputDataConfig?.filter(
      ({ ChannelName = '' }) => isInImage || !TOOL_CHANNELS.includes(ChannelName),
    ),
  };
}

/** Instance types of a request; of alternatives, the preferred one. */
const typesOf = ({ ResourceConfig: config }: ForeignRequest): string[] =>
  [
    ofInstances('InstanceType')(config),
    ...(config?.InstanceGroups ?? []).map(({ InstanceType }) => InstanceType),
  ].filter((type) => typeof type === 'string');

/** Region of the image's registry; undefined for images outside ECR. */
export const regionOfImage = ({ AlgorithmSpecification: algorithm }: ForeignRequest): string | undefined =>
  /\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\./.exec(algorithm?.TrainingImage ?? '')?.[1];

/**
 * The `image` section for exactly this URI: an AWS image kind if the catalog produces the same URI, otherwise `uri`.
 * @param instanceType the type whose processors the image supports
 */
function imageSection(uri: string, region: string, instanceType: string): Draft {
  const [, repository = '', tag = ''] = /\/([^/:@]+):([^:/@]+)$/.exec(uri) ?? [];
  const version = /^(\d+\.\d+(?:\.\d+)?)/.exec(tag)?.[1] ?? '';
  const transformers = /-transformers(\d+\.\d+\.\d+)-/.exec(tag)?.[1] ?? '';
  const kinds: Record<string, () => string | undefined> = {
    smp: () => smpImageUri(version, region, instanceType),
    dlc: () =>
      repository === 'pytorch-training-neuron'
        ? neuronImageUri(version, region)
        : dlcImageUri(version, region, !tag.includes('-cpu-')),
    huggingface: () => (transformers in HUGGING_FACE_IMAGES ? huggingFaceImageUri(transformers, region) : undefined),
  };
  const kind = Object.keys(kinds).find((name) => kinds[name]?.() === uri);
  if (!kind) return { kind: 'uri', uri };
  return { kind, version: kind === 'huggingface' ? transformers : version };
}
