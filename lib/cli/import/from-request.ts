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
  inOrder,
  type Row,
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

const fileSystem =
  (type: 'efs' | 'fsxLustre'): Row[2] =>
  (source) => {
    if (source === undefined || (valueAt(source, 'FileSystemType') === 'EFS') !== (type === 'efs')) return undefined;
    return convert(FILE_SYSTEM, source);
  };

const FILE_SYSTEM: readonly Row[] = [
  ['fileSystemId', 'FileSystemId'],
  ['directoryPath', 'DirectoryPath'],
  ['access', 'FileSystemAccessMode', when('rw', 'rw')],
];

const S3 = 'DataSource.S3DataSource';
const CHANNEL: readonly Row[] = [
  ['channel', 'ChannelName'],
  ['efs', 'DataSource.FileSystemDataSource', fileSystem('efs')],
  ['fsxLustre', 'DataSource.FileSystemDataSource', fileSystem('fsxLustre')],
  ['s3', `${S3}.S3Uri`],
  ['inputMode', 'InputMode', unless('File')],
  ['s3DataType', `${S3}.S3DataType`, unless('S3Prefix')],
  ['s3DataDistribution', `${S3}.S3DataDistributionType`, unless('FullyReplicated')],
  ['attributeNames', `${S3}.AttributeNames`],
  ['instanceGroups', `${S3}.InstanceGroupNames`],
  ['shuffleSeed', 'ShuffleConfig.Seed'],
  ['contentType', 'ContentType'],
];
const INSTANCE_GROUP: readonly Row[] = [
  ['name', 'InstanceGroupName'],
  ['instanceType', 'InstanceType'],
  ['instanceCount', 'InstanceCount'],
];
const ALTERNATIVE: readonly Row[] = [
  ['instanceType', 'InstanceType'],
  ['instanceCount', 'InstanceCount'],
  ['trainingPlanArn', 'TrainingPlanArns.0'],
];
const ULTRA_SERVER: readonly Row[] = [
  ['id', 'UltraServerId'],
  ['instanceCount', 'InstanceCount'],
];
const METRIC: readonly Row[] = [
  ['name', 'Name'],
  ['regex', 'Regex'],
];
const CHECKPOINTS: readonly Row[] = [
  ['mode', 'S3Uri', (uri) => (uri ? 'managed' : undefined)],
  ['s3', 'S3Uri'],
  ['localPath', 'LocalPath'],
];
const MLFLOW: readonly Row[] = [
  ['arn', 'MlflowResourceArn'],
  ['experiment', 'MlflowExperimentName'],
];

const RESOURCES = 'ResourceConfig';
/** What a run file and a request both express, except for the program and its image. */
const REQUEST: readonly Row[] = [
  ['name', 'TrainingJobName', (name) => runName(String(name ?? 'imported'))],
  ['tags', 'Tags', tags],
  ['compute.instanceType', [`${RESOURCES}.InstanceType`, `${RESOURCES}.InstancePreferences.0.InstanceType`]],
  ['compute.instanceCount', [`${RESOURCES}.InstanceCount`, `${RESOURCES}.InstancePreferences.0.InstanceCount`]],
  ['compute.instanceGroups', `${RESOURCES}.InstanceGroups`, each(INSTANCE_GROUP)],
  ['compute.alternatives', `${RESOURCES}.InstancePreferences`, (list) => each(ALTERNATIVE)([list].flat().slice(1))],
  ['compute.capacity', 'EnableManagedSpotTraining', when(true, 'spot')],
  ['compute.trainingPlanArn', `${RESOURCES}.TrainingPlanArn`],
  ['compute.volumeSizeGiB', `${RESOURCES}.VolumeSizeInGB`],
  ['compute.keepAliveSeconds', `${RESOURCES}.KeepAlivePeriodInSeconds`],
  ['compute.infraCheck', 'InfraCheckConfig.EnableInfraCheck'],
  ['compute.placement.multipleJobs', `${RESOURCES}.InstancePlacementConfig.EnableMultipleJobs`],
  [
    'compute.placement.ultraServers',
    `${RESOURCES}.InstancePlacementConfig.PlacementSpecifications`,
    each(ULTRA_SERVER),
  ],
  ['data', 'InputDataConfig', each(CHANNEL)],
  [
    'checkpoints',
    'CheckpointConfig',
    (config) => (valueAt(config, 'S3Uri') ? convert(CHECKPOINTS, config) : { mode: 'none' }),
  ],
  // Without a compression type, the service writes one archive.
  [
    'output.compression',
    'OutputDataConfig',
    (config) => (config && valueAt(config, 'CompressionType') !== 'NONE' ? 'gzip' : undefined),
  ],
  [
    'limits.maxRuntimeSeconds',
    'StoppingCondition.MaxRuntimeInSeconds',
    (seconds) => seconds ?? SERVICE_RUNTIME_SECONDS,
  ],
  ['limits.maxWaitSeconds', 'StoppingCondition.MaxWaitTimeInSeconds'],
  ['limits.maxPendingSeconds', 'StoppingCondition.MaxPendingTimeInSeconds'],
  ['limits.retryInternalErrors', 'RetryStrategy.MaximumRetryAttempts'],
  ['network.isolation', 'EnableNetworkIsolation', when(true, true)],
  ['network.interContainerEncryption', 'EnableInterContainerTrafficEncryption', when(true, true)],
  [
    'observability.metrics',
    'AlgorithmSpecification.MetricDefinitions',
    (list) => each(METRIC)(without(list, 'Name', /^slipway:/)),
  ],
  [
    'observability.profiler',
    'ProfilerConfig',
    (config) => (valueAt(config, 'S3OutputPath') && !valueAt(config, 'DisableProfiler') ? 'sagemaker' : undefined),
  ],
  ['observability.tensorBoard', 'TensorBoardOutputConfig', (config) => (config ? true : undefined)],
  ['observability.remoteDebug', 'RemoteDebugConfig.EnableRemoteDebug', when(true, true)],
  [
    'observability.mlflow',
    'MlflowConfig',
    (config) => (valueAt(config, 'MlflowResourceArn') ? convert(MLFLOW, config) : undefined),
  ],
];

/** The run file from which Slipway would build this request, as far as a run file can express it. */
export function draftOf(request: ForeignRequest, files?: TrainerFiles): Drafted {
  const { draft: start, remarks } = startOf(request, files);
  const image = request.AlgorithmSpecification?.TrainingImage ?? '';
  const types = typesOf(request);
  const carried = convert(REQUEST, reduced(request, types, valueAt(start, 'code.source') === CODE_IN_IMAGE));
  const set = Object.entries(request.Environment ?? {}).filter(([key]) => !key.startsWith('SLIPWAY_'));
  const environmentVariables = { ...(start.environmentVariables as Draft), ...Object.fromEntries(set) };
  const draft = inOrder({
    ...carried,
    ...filled({ ...start, environmentVariables }),
    image: image === '' ? undefined : { ...imageSection(image, types[0] ?? ''), ...(carried.image as Draft) },
    compute: carried.compute ?? {},
  });
  return { draft, remarks };
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
    config?.InstanceType,
    ...(config?.InstanceGroups ?? []).map(({ InstanceType }) => InstanceType),
    valueAt(config, 'InstancePreferences.0.InstanceType') as string | undefined,
  ].flatMap((type) => type ?? []);

/** Region in the URI of a registry; undefined for images outside ECR. */
export const regionOfImage = (uri: string): string | undefined => /\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\./.exec(uri)?.[1];

/**
 * The `image` section for exactly this URI: an AWS image kind if the catalog produces the same URI, otherwise `uri`.
 * @param instanceType the type whose processors the image supports
 */
function imageSection(uri: string, instanceType: string): { kind: string; version?: string; uri?: string } {
  const region = regionOfImage(uri) ?? '';
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
