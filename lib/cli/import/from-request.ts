import type { Channel, ResourceConfig } from '@aws-sdk/client-sagemaker';
import { hasLocalNvme } from '../../core/catalog/instances/instances';
import { CODE_IN_IMAGE } from '../../core/config/code-source';
import { readArguments, readCommand, type StartCommand, splitWords } from './command-line';
import { type Draft, type Drafted, filled, imageSection, runName } from './draft';
import { isModelTrainer, ofModelTrainer, type TrainerFiles } from './model-trainer';
import { type ForeignRequest, isObject } from './read-request';
import { readToolkit, type ToolkitJob } from './toolkit';

/** The service's default limit. https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_StoppingCondition.html, 2026-11-22. */
const SERVICE_RUNTIME_SECONDS = 86_400;
/** Channels that tools add to a job: Slipway, and the SageMaker Python SDK v2 and v3. */
const TOOL_CHANNELS = ['driver', 'job', 'weights', 'code', 'sm_drivers'];

/** The run file from which Slipway would build this request, as far as a run file can express it. */
export function draftOf(request: ForeignRequest, files?: TrainerFiles): Drafted {
  const image = request.AlgorithmSpecification?.TrainingImage ?? '';
  const toolkit = readToolkit(request.HyperParameters ?? {}, image.includes('/smdistributed-modelparallel:'));
  const start = toolkit ? ofToolkit(toolkit, request) : ofContainer(request, files);
  const draft: Draft = {
    name: runName(request.TrainingJobName ?? 'imported'),
    tags: tagsOf(request),
    code: start.draft.code,
    image:
      image === '' ? undefined : { ...imageSection(image, firstType(request.ResourceConfig)), ...registryOf(request) },
    compute: computeOf(request),
    distribution: start.draft.distribution,
    data: channelsOf(request, isInImage(start.draft)),
    checkpoints: checkpointsOf(request),
    output: outputOf(request),
    limits: limitsOf(request),
    network: networkOf(request),
    observability: observabilityOf(request),
    hyperparameters: unlessEmpty(start.draft.hyperparameters as Draft),
    environmentVariables: unlessEmpty({ ...(start.draft.environmentVariables as Draft), ...variablesOf(request) }),
  };
  return { draft: filled(draft) ?? {}, remarks: start.remarks };
}

/** A map with keys chosen by the user; undefined when it is empty. */
const unlessEmpty = (map: Draft | undefined): Draft | undefined =>
  map && Object.keys(map).length > 0 ? map : undefined;

function ofToolkit(toolkit: ToolkitJob, request: ForeignRequest): Drafted {
  const source = toolkit.source ?? codeChannel(request)?.DataSource?.S3DataSource?.S3Uri ?? './src';
  const code = { source, entryPoint: toolkit.entryPoint };
  const { distribution, hyperparameters } = toolkit;
  return { draft: { code, distribution, hyperparameters }, remarks: [] };
}

/** A job that is started by the image's entrypoint or by a command in the request. */
function ofContainer(request: ForeignRequest, files?: TrainerFiles): Drafted {
  const { ContainerEntrypoint = [], ContainerArguments = [] } = request.AlgorithmSpecification ?? {};
  const given = [...ContainerEntrypoint, ...ContainerArguments];
  const source = archiveOf(request) ?? './src';
  if (isModelTrainer(request)) return ofModelTrainer(request, source, files);
  const inShell = behindShell(given);
  const words = inShell ?? given;
  const command = lastCommand(inShell?.[0] ?? '') ?? readCommand(words);
  const hyperparameters = request.HyperParameters ?? {};
  if (!command && isOwnDriver(given)) {
    const why =
      'is the driver of Slipway, which reads the program from the job file; set code.entryPoint to it, and distribution.launcher to what starts it';
    const remarks = [{ field: 'AlgorithmSpecification.ContainerArguments', value: given.join(' '), why }];
    return { draft: { code: { source }, distribution: { library: 'custom' }, hyperparameters }, remarks };
  }
  if (!command) return { draft: { code: codeInImage(request), hyperparameters }, remarks: [] };
  return ofCommand(command, source, 'AlgorithmSpecification.ContainerArguments', hyperparameters);
}

/** The command that starts Slipway's jobs. */
const isOwnDriver = (words: readonly string[]): boolean => words.some((word) => word.includes('/driver/launch.sh'));

/** A program without a known launcher is imported unchanged: the image or the command in the request starts it. */
function codeInImage({ AlgorithmSpecification: algorithm }: ForeignRequest): Draft | undefined {
  return filled({
    source: CODE_IN_IMAGE,
    containerEntrypoint: algorithm?.ContainerEntrypoint,
    containerArguments: algorithm?.ContainerArguments,
  });
}

/** Sections for a start command; `field` is the path for remarks. */
export function ofCommand(command: StartCommand, source: string, field: string, hyperparameters: Draft = {}): Drafted {
  const { values, others } = readArguments(command.arguments);
  const remarks = [
    ...command.others.map(({ option, value }) => ({
      field: `${field} ${option}`,
      value,
      why: `an option of the launcher that Slipway's driver sets automatically or does not support`,
    })),
    ...others.map((value) => ({
      field,
      value,
      why: 'code.arguments only supports --key value; change the program to read it from such an argument',
    })),
  ];
  const relative = command.entryPoint.replace(/^\/opt\/ml\/(code|input\/data\/code)\//, '').replace(/^\.\//, '');
  const draft = {
    code: filled({ source, entryPoint: relative, arguments: unlessEmpty(values) }),
    distribution: filled({
      library: 'custom',
      launcher: command.launcher,
      processesPerHost: command.launcher === 'script' ? undefined : command.processesPerHost,
    }),
    hyperparameters,
    environmentVariables: command.variables,
  };
  return { draft, remarks };
}

/** The command passed to `bash -c`; undefined when no shell is started. */
function behindShell(words: readonly string[]): string[] | undefined {
  const at = words.indexOf('-c');
  const isShell = /(^|\/)(ba)?sh$/.test(words[0] ?? '') && at > 0;
  return isShell ? words.slice(at + 1) : undefined;
}

/** The last command of `cd x && torchrun ...` with a known program. */
const lastCommand = (text: string): StartCommand | undefined =>
  text
    .split(/&&|;|\n/)
    .map((part) => readCommand(splitWords(part)))
    .findLast((command) => command !== undefined);

const codeChannel = (request: ForeignRequest): Channel | undefined =>
  request.InputDataConfig?.find(({ ChannelName }) => ChannelName === 'code');

/** The archive of channel `code`; undefined for a prefix in S3. */
function archiveOf(request: ForeignRequest): string | undefined {
  const uri = codeChannel(request)?.DataSource?.S3DataSource?.S3Uri;
  return uri?.endsWith('.tar.gz') ? uri : undefined;
}

function tagsOf(request: ForeignRequest): Draft | undefined {
  const own = (request.Tags ?? []).filter(({ Key = '' }) => !/^(slipway|aws):/.test(Key));
  return unlessEmpty(Object.fromEntries(own.map(({ Key, Value }) => [Key, Value ?? ''])));
}

function firstType(config: ResourceConfig | undefined): string {
  const preferences = (config as { InstancePreferences?: { InstanceType?: string }[] } | undefined)
    ?.InstancePreferences;
  return config?.InstanceType ?? config?.InstanceGroups?.[0]?.InstanceType ?? preferences?.[0]?.InstanceType ?? '';
}

interface Preference {
  InstanceType?: string;
  InstanceCount?: number;
  TrainingPlanArns?: string[];
}

function computeOf(request: ForeignRequest): Draft {
  const config = (request.ResourceConfig ?? {}) as ResourceConfig & { InstancePreferences?: Preference[] };
  const groups = (config.InstanceGroups ?? []).map((g) => ({
    name: g.InstanceGroupName,
    instanceType: g.InstanceType,
    instanceCount: g.InstanceCount,
  }));
  const [first, ...others] = config.InstancePreferences ?? [];
  const alternatives = others.map((p) => ({
    instanceType: p.InstanceType,
    ...(p.InstanceCount !== undefined && { instanceCount: p.InstanceCount }),
    ...(p.TrainingPlanArns?.[0] && { trainingPlanArn: p.TrainingPlanArns[0] }),
  }));
  const types = [config.InstanceType, ...groups.map((g) => g.instanceType), first?.InstanceType].filter(Boolean);
  const hasNvme = types.some((type) => hasLocalNvme(type ?? ''));
  return {
    ...filled({
      instanceType: config.InstanceType ?? first?.InstanceType,
      instanceCount: groups.length > 0 ? undefined : (config.InstanceCount ?? first?.InstanceCount),
      instanceGroups: groups,
      alternatives,
      capacity: request.EnableManagedSpotTraining ? 'spot' : undefined,
      trainingPlanArn: config.TrainingPlanArn,
      volumeSizeGiB: hasNvme ? undefined : config.VolumeSizeInGB,
      keepAliveSeconds: config.KeepAlivePeriodInSeconds,
      infraCheck: request.InfraCheckConfig?.EnableInfraCheck,
      placement: placementOf(config.InstancePlacementConfig),
    }),
  };
}

function placementOf(config: ResourceConfig['InstancePlacementConfig']): Draft | undefined {
  return filled({
    multipleJobs: config?.EnableMultipleJobs,
    ultraServers: config?.PlacementSpecifications?.map(({ UltraServerId, InstanceCount }) => ({
      ...(UltraServerId !== undefined && { id: UltraServerId }),
      instanceCount: InstanceCount,
    })),
  });
}

/** Credentials of a private image registry. */
function registryOf({ AlgorithmSpecification: algorithm }: ForeignRequest): Draft | undefined {
  const { TrainingRepositoryAccessMode: mode, TrainingRepositoryAuthConfig: credentials } =
    algorithm?.TrainingImageConfig ?? {};
  if (mode !== 'Vpc') return undefined;
  return filled({
    repositoryAccess: 'vpc',
    credentialsProviderArn: credentials?.TrainingRepositoryCredentialsProviderArn,
  });
}

/** Without a compression type, the service writes one archive. */
const outputOf = ({ OutputDataConfig }: ForeignRequest): Draft | undefined =>
  OutputDataConfig && OutputDataConfig.CompressionType !== 'NONE' ? { compression: 'gzip' } : undefined;

const isInImage = ({ code }: Draft): boolean => isObject(code) && code.source === CODE_IN_IMAGE;

/** A program without a known launcher keeps all channels; otherwise the channels of the tool are removed. */
function channelsOf(request: ForeignRequest, all: boolean): Draft[] {
  const mode = request.AlgorithmSpecification?.TrainingInputMode ?? 'File';
  const channels = (request.InputDataConfig ?? []).filter((c) => all || !TOOL_CHANNELS.includes(c.ChannelName ?? ''));
  return channels.map((channel) => channelOf(channel, mode));
}

function channelOf(channel: Channel, mode: string): Draft {
  const { S3DataSource: s3, FileSystemDataSource: files } = channel.DataSource ?? {};
  if (files) {
    const place = {
      fileSystemId: files.FileSystemId,
      directoryPath: files.DirectoryPath,
      ...(files.FileSystemAccessMode === 'rw' && { access: 'rw' }),
    };
    return { channel: channel.ChannelName, [files.FileSystemType === 'EFS' ? 'efs' : 'fsxLustre']: place };
  }
  const inputMode = channel.InputMode ?? mode;
  return {
    ...filled({
      channel: channel.ChannelName,
      s3: s3?.S3Uri,
      inputMode: inputMode === 'File' ? undefined : inputMode,
      s3DataType: s3?.S3DataType === 'S3Prefix' ? undefined : s3?.S3DataType,
      s3DataDistribution: s3?.S3DataDistributionType === 'FullyReplicated' ? undefined : s3?.S3DataDistributionType,
      attributeNames: s3?.AttributeNames,
      hubContentArn: s3?.HubAccessConfig?.HubContentArn,
      acceptEula: s3?.ModelAccessConfig?.AcceptEula,
      instanceGroups: s3?.InstanceGroupNames,
      shuffleSeed: channel.ShuffleConfig?.Seed,
      contentType: channel.ContentType,
    }),
  };
}

function checkpointsOf({ CheckpointConfig: config }: ForeignRequest): Draft {
  if (!config?.S3Uri) return { mode: 'none' };
  return { mode: 'managed', s3: config.S3Uri, ...(config.LocalPath && { localPath: config.LocalPath }) };
}

function limitsOf({ StoppingCondition: stop = {}, RetryStrategy: retry }: ForeignRequest): Draft | undefined {
  return filled({
    maxRuntimeSeconds: stop.MaxRuntimeInSeconds ?? SERVICE_RUNTIME_SECONDS,
    maxWaitSeconds: stop.MaxWaitTimeInSeconds,
    maxPendingSeconds: stop.MaxPendingTimeInSeconds,
    retryInternalErrors: retry?.MaximumRetryAttempts,
  });
}

function networkOf(request: ForeignRequest): Draft | undefined {
  return filled({
    isolation: request.EnableNetworkIsolation || undefined,
    interContainerEncryption: request.EnableInterContainerTrafficEncryption || undefined,
  });
}

function observabilityOf(request: ForeignRequest): Draft | undefined {
  const metrics = (request.AlgorithmSpecification?.MetricDefinitions ?? [])
    .filter(({ Name = '' }) => !Name.startsWith('slipway:'))
    .map(({ Name, Regex }) => ({ name: Name, regex: Regex }));
  const { ProfilerConfig: profiler, MlflowConfig } = request;
  const mlflow = isObject(MlflowConfig) ? (MlflowConfig as { [key: string]: string }) : undefined;
  return filled({
    metrics,
    profiler: profiler?.S3OutputPath && !profiler.DisableProfiler ? 'sagemaker' : undefined,
    tensorBoard: request.TensorBoardOutputConfig ? true : undefined,
    remoteDebug: request.RemoteDebugConfig?.EnableRemoteDebug || undefined,
    mlflow: mlflow?.MlflowResourceArn
      ? filled({ arn: mlflow.MlflowResourceArn, experiment: mlflow.MlflowExperimentName })
      : undefined,
  });
}

/** Variables set by the user, without those that Slipway sets. */
function variablesOf(request: ForeignRequest): Draft {
  return Object.fromEntries(Object.entries(request.Environment ?? {}).filter(([key]) => !key.startsWith('SLIPWAY_')));
}
