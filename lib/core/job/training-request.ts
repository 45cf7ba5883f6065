import type {
  AlgorithmSpecification,
  CreateTrainingJobCommandInput,
  MetricDefinition,
  ResourceConfig,
  Tag,
} from '@aws-sdk/client-sagemaker';
import { hasEfa, hasLocalNvme } from '../catalog/instances/instances';
import { writingKey } from '../config/descriptor';
import { fillPlaceholders } from '../config/formats/places';
import { hostCount, instanceGroupsOf, requestedAlternativesOf, requestedGroupsOf } from '../config/resolve-run';
import { DEFAULT_VOLUME_GIB } from '../config/run/compute';
import { jobName } from '../contracts/names';
import { inputChannels } from './channels';
import { imageUri, plainHyperparameters, toolkitHyperparameters } from './image';
import { type JobPlan, runPrefixes } from './plan';
import { teamKeyVariable } from './team-key';

/** docs/reference/runtime.md: the same request works in a container and in the sandbox, where each instance has its own directory tree. */
const CONTAINER_ARGUMENTS = ['-c', 'exec bash "${SAGEMAKER_BASE_DIR:-/opt/ml}/input/data/driver/launch.sh"'];

/** Maximum number of MetricDefinitions of a job. */
const MAX_METRICS = 40;

/** Metrics from the progress lines of the built-in trainer (docs/reference/runtime.md). */
const PROGRESS_METRICS: readonly MetricDefinition[] = [
  { Name: 'slipway:step', Regex: 'slipway \\{"event":"step","step":([0-9]+)' },
  { Name: 'slipway:loss', Regex: 'slipway \\{"event":"step".*?"loss":([0-9.eE+-]+)' },
  { Name: 'slipway:tokensPerSecondPerGpu', Regex: 'slipway \\{"event":"step".*?"tokensPerSecondPerGpu":([0-9.eE+-]+)' },
  { Name: 'slipway:mfu', Regex: 'slipway \\{"event":"step".*?"mfu":([0-9.eE+-]+)' },
];

/** The CreateTrainingJob request of one attempt. */
export function trainingJobRequest(plan: JobPlan): CreateTrainingJobCommandInput {
  const { run, descriptor } = plan;
  const name = jobName(descriptor.name, plan.runId, plan.attempt);
  const isToolkit = run.distribution.contract === 'toolkit';
  const hyperparameters = isToolkit ? toolkitHyperparameters(plan, name) : plainHyperparameters(plan);
  const channels = inputChannels(plan);
  return {
    TrainingJobName: name,
    RoleArn: descriptor.executionRoleArn,
    AlgorithmSpecification: algorithm(plan),
    ...(Object.keys(hyperparameters).length > 0 && { HyperParameters: hyperparameters }),
    ...(channels.length > 0 && { InputDataConfig: channels }),
    OutputDataConfig: {
      S3OutputPath: run.output?.s3 ? fillPlaceholders(run.output.s3, plan) : runPrefixes(plan).output,
      KmsKeyId: writingKey(descriptor),
      CompressionType: run.output?.compression === 'gzip' ? 'GZIP' : 'NONE',
    },
    ResourceConfig: resourceConfig(plan),
    ...(run.compute.infraCheck !== undefined && { InfraCheckConfig: { EnableInfraCheck: run.compute.infraCheck } }),
    StoppingCondition: {
      MaxRuntimeInSeconds: run.limits.maxRuntimeSeconds,
      MaxWaitTimeInSeconds: run.limits.maxWaitSeconds,
      MaxPendingTimeInSeconds: run.limits.maxPendingSeconds,
    },
    ...(descriptor.subnetIds.length > 0 && {
      VpcConfig: { Subnets: descriptor.subnetIds, SecurityGroupIds: descriptor.securityGroupIds },
    }),
    ...(run.checkpoints.mode === 'managed' && {
      CheckpointConfig: { S3Uri: fillPlaceholders(run.checkpoints.s3, plan), LocalPath: run.checkpoints.localPath },
    }),
    ...(run.network.isolation && { EnableNetworkIsolation: true }),
    ...(run.network.interContainerEncryption && { EnableInterContainerTrafficEncryption: true }),
    ...(run.compute.capacity === 'spot' && { EnableManagedSpotTraining: true }),
    Environment: environment(plan),
    RetryStrategy: { MaximumRetryAttempts: run.limits.retryInternalErrors },
    ...observability(plan),
    Tags: tags(plan),
  };
}

function algorithm({ run, region, descriptor }: JobPlan): AlgorithmSpecification {
  const own = run.observability.metrics.map(({ name, regex }) => ({ Name: name, Regex: regex }));
  return {
    TrainingImage: imageUri(run, region, descriptor.trainingImageUri),
    TrainingInputMode: 'File',
    ...entrypoint(run),
    // Slipway's metrics come last, as far as there is room: the user's metrics take precedence.
    MetricDefinitions: [...own, ...PROGRESS_METRICS].slice(0, MAX_METRICS),
    EnableSageMakerMetricsTimeSeries: true,
  };
}

/** The entrypoint that SageMaker starts in the image. In its own images, the toolkit is the entrypoint. */
function entrypoint({
  code,
  distribution: { contract },
}: JobPlan['run']): Pick<AlgorithmSpecification, 'ContainerEntrypoint' | 'ContainerArguments'> {
  if (contract === 'toolkit') return {};
  if (contract === 'entrypoint') return { ContainerEntrypoint: ['/bin/bash'], ContainerArguments: CONTAINER_ARGUMENTS };
  return {
    ...(code.containerEntrypoint && { ContainerEntrypoint: code.containerEntrypoint }),
    ...(code.containerArguments && { ContainerArguments: code.containerArguments }),
  };
}

function resourceConfig({ run: { compute }, descriptor }: JobPlan): ResourceConfig {
  const key = writingKey(descriptor);
  const hasVolumes = hasEbsVolumes(compute);
  const servers = compute.placement?.ultraServers?.map(({ id, instanceCount }) => ({
    UltraServerId: id,
    InstanceCount: instanceCount,
  }));
  const volume = compute.volumeSizeGiB ?? (hasVolumes ? DEFAULT_VOLUME_GIB : undefined);
  return {
    ...cluster(compute),
    VolumeSizeInGB: volume,
    ...(hasVolumes && key && { VolumeKmsKeyId: key }),
    ...(compute.keepAliveSeconds > 0 && { KeepAlivePeriodInSeconds: compute.keepAliveSeconds }),
    ...(compute.trainingPlanArn && { TrainingPlanArn: compute.trainingPlanArn }),
    ...(compute.placement && {
      InstancePlacementConfig: {
        EnableMultipleJobs: compute.placement.multipleJobs,
        ...(servers && { PlacementSpecifications: servers }),
      },
    }),
  };
}

/**
 * Whether an instance of the job may have an EBS volume, which requires a size and is encrypted with a key. SageMaker rejects the key for
 * types with local NVMe, so that it rejects a job of both kinds, rather than leave volumes without the key.
 */
export function hasEbsVolumes(compute: JobPlan['run']['compute']): boolean {
  const groups = instanceGroupsOf(compute).map((group) => group.instanceType);
  return ![...groups, ...compute.alternatives.map((other) => other.instanceType)].every(hasLocalNvme);
}

/** The instances of a job: groups, one type, or the preferred types in order. */
export function cluster(compute: JobPlan['run']['compute']): ResourceConfig {
  if (compute.instanceGroups.length > 0) {
    return {
      InstanceGroups: compute.instanceGroups.map((g) => ({
        InstanceGroupName: g.name,
        InstanceType: g.instanceType as ResourceConfig['InstanceType'],
        InstanceCount: g.instanceCount,
      })),
    };
  }
  const InstanceType = compute.instanceType as ResourceConfig['InstanceType'];
  const InstanceCount = hostCount(requestedGroupsOf(compute));
  if (compute.alternatives.length === 0) return { InstanceType, InstanceCount };
  // The count is either on every preference or once on ResourceConfig.
  const onEach = compute.alternatives.some((a) => a.instanceCount !== undefined);
  const preferences = [
    { instanceType: compute.instanceType, instanceCount: InstanceCount },
    ...requestedAlternativesOf(compute),
  ].map((a) => ({
    InstanceType: a.instanceType as ResourceConfig['InstanceType'],
    ...(onEach && { InstanceCount: a.instanceCount }),
    ...('trainingPlanArn' in a && a.trainingPlanArn && { TrainingPlanArns: [a.trainingPlanArn] }),
  }));
  return { InstancePreferences: preferences, ...(!onEach && { InstanceCount }) } as ResourceConfig;
}

/** The user's variables come last, so that they take precedence. */
function environment(plan: JobPlan): Record<string, string> {
  const { run, descriptor } = plan;
  const { contract } = run.distribution;
  const hasDriver = contract === 'entrypoint';
  return {
    SLIPWAY_RUN_ID: plan.runId,
    SLIPWAY_ATTEMPT: String(plan.attempt),
    // COMMITTED.json records which image wrote a checkpoint.
    ...(hasDriver && { SLIPWAY_IMAGE_URI: imageUri(run, plan.region, descriptor.trainingImageUri) ?? '' }),
    ...(!hasDriver && plan.resumeFrom !== '' && { SLIPWAY_RESUME_FROM: plan.resumeFrom }),
    ...teamKeyVariable(descriptor),
    ...wandbVariables(plan),
    ...(contract === 'toolkit' && toolkitEfa(plan)),
    ...run.environmentVariables,
  };
}

/**
 * Variables of the Weights & Biases client. All attempts have one id, so that a later attempt continues the W&B run of the earlier one.
 * https://docs.wandb.ai/guides/track/environment-variables/, 2026-11-23.
 */
function wandbVariables({ run, runId }: JobPlan): Record<string, string> {
  const { wandb } = run.observability;
  if (!wandb) return {};
  return {
    WANDB_PROJECT: wandb.project,
    ...(wandb.entity !== undefined && { WANDB_ENTITY: wandb.entity }),
    ...(wandb.baseUrl !== undefined && { WANDB_BASE_URL: wandb.baseUrl }),
    WANDB_RUN_ID: runId,
    WANDB_NAME: runId,
    WANDB_RESUME: 'allow',
  };
}

/** The toolkit's own list of EFA types ends at p5: it does not contain p5e, p5en and p6 (docs/facts/training-job.md 2.4). */
function toolkitEfa({ run }: JobPlan): Record<string, string> {
  const groups = instanceGroupsOf(run.compute);
  const efa = groups.every((g) => hasEfa(g.instanceType));
  return efa && hostCount(groups) > 1 && run.network.efa !== 'off' ? { FI_PROVIDER: 'efa' } : {};
}

function observability(plan: JobPlan): Partial<CreateTrainingJobCommandInput> {
  const { profiler, tensorBoard, remoteDebug, mlflow } = plan.run.observability;
  const output = runPrefixes(plan).output;
  return {
    ProfilerConfig: profiler === 'sagemaker' ? { S3OutputPath: `${output}profiler/` } : { DisableProfiler: true },
    ...(tensorBoard && { TensorBoardOutputConfig: { S3OutputPath: `${output}tensorboard/` } }),
    ...(remoteDebug && { RemoteDebugConfig: { EnableRemoteDebug: true } }),
    ...(mlflow && {
      MlflowConfig: {
        MlflowResourceArn: mlflow.arn,
        MlflowExperimentName: mlflow.experiment,
        MlflowRunName: plan.runId,
      },
    }),
  };
}

/** Cost allocation tags: team and environment come from the descriptor, never from the run file. */
export function tags(plan: JobPlan): Tag[] {
  const own = {
    'slipway:environment': plan.descriptor.name,
    'slipway:team': plan.descriptor.team,
    'slipway:run': plan.runId,
    'slipway:attempt': String(plan.attempt),
  };
  return Object.entries({ ...plan.run.tags, ...plan.descriptor.tags, ...own }).map(([Key, Value]) => ({ Key, Value }));
}
