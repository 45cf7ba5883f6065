import {
  acceleratorCount,
  defaultProcessesPerHost,
  findInstanceType,
  hasEfa,
  lacksBf16,
} from '../catalog/instances/instances';
import { TRAINER_CHECKPOINTS } from '../catalog/progress-formats';
import { CODE_IN_IMAGE } from './code-source';
import { placeOf } from './formats/places';
import { resolveModel } from './run/model';
import type { RunFile } from './run-file';
import type { ComputeSpec, Contract, DistributionSpec, HealthCheck, Launcher, RunSpec, TrainingSpec } from './run-spec';

/** Added to maxRuntimeSeconds when a spot run does not set maxWaitSeconds. */
const SPOT_PATIENCE_SECONDS = 86_400;
/** Default value of the quota `Longest run time for a training job`. */
const DEFAULT_RUNTIME_SECONDS = 432_000;

/**
 * Fills in every default of docs/decisions/0007-where-sources-differ.md. Total: everything that the schema accepts gives a spec, which the
 * rules check afterwards.
 */
export function resolveRun(file: RunFile): RunSpec {
  const builtin = builtinOf(file.code.source);
  const compute = resolveCompute(file.compute);
  return {
    name: file.name,
    kind: file.kind ?? 'training',
    environment: file.environment,
    after: file.after ?? [],
    priority: file.priority ?? 0,
    ...(file.preemptible && { preemptible: true as const }),
    tags: file.tags ?? {},
    model: resolveModel(file),
    training: resolveTraining(file, compute),
    ...(file.tokenizer && { tokenizer: file.tokenizer }),
    progress: { format: 'auto', startupMinutes: 30, silenceMinutes: 20, ...file.progress },
    code: resolveCode(file.code, builtin),
    image: { ...file.image, kind: file.image?.kind ?? 'environment' },
    compute,
    distribution: resolveDistribution(file, compute),
    data: resolveData(file.data ?? [], builtin),
    checkpoints: resolveCheckpoints(file, builtin !== undefined),
    output: file.output,
    limits: resolveLimits(file.limits ?? {}, compute),
    network: {
      isolation: false,
      interContainerEncryption: false,
      efa: usesEfa(compute) ? 'required' : 'off',
      efaVariables: 'auto',
      ...file.network,
    },
    observability: { metrics: [], profiler: 'off', tensorBoard: false, remoteDebug: false, ...file.observability },
    hyperparameters: file.hyperparameters ?? {},
    environmentVariables: file.environmentVariables ?? {},
    // Absent when empty: the configuration hash of a run without secrets does not change.
    ...(file.secrets && Object.keys(file.secrets).length > 0 && { secrets: file.secrets }),
    acknowledge: file.acknowledge ?? [],
    written: file,
  };
}

/** Whether the driver starts the program of the run: it reads job.json, checks hosts and sends heartbeats. */
export const startsByDriver = ({ kind, distribution }: Pick<RunSpec, 'kind' | 'distribution'>): boolean =>
  kind === 'processing' || distribution.contract === 'entrypoint';

function builtinOf(source: string): RunSpec['code']['builtin'] {
  return (['builtin', 'builtin-tokenize', 'builtin-fetch'] as const).find((name) => name === source);
}

function resolveCode(code: RunFile['code'], builtin: RunSpec['code']['builtin']): RunSpec['code'] {
  return {
    source: code.source,
    builtin,
    entryPoint: code.entryPoint ?? builtin ?? 'train.py',
    arguments: code.arguments ?? {},
    requirements: code.requirements,
    sha256: code.sha256,
    ...(code.containerEntrypoint && { containerEntrypoint: code.containerEntrypoint }),
    ...(code.containerArguments && { containerArguments: code.containerArguments }),
  };
}

/** The built-in trainer streams its data; custom code decides itself how it reads. A fetched data set is a folder in S3. */
function resolveData(data: NonNullable<RunFile['data']>, builtin: RunSpec['code']['builtin']): RunSpec['data'] {
  return data.map((given) => {
    const place = placeOf(given.source);
    const channel = place?.startsWith('s3://') ? { ...given, s3: given.s3 ?? place } : given;
    return builtin === 'builtin' && channel.s3 && !channel.inputMode
      ? { ...channel, inputMode: 'FastFile' as const }
      : channel;
  });
}

/** A spot job waits for capacity in addition to its run time. */
function resolveLimits(limits: NonNullable<RunFile['limits']>, { capacity }: ComputeSpec): RunSpec['limits'] {
  const maxRuntimeSeconds = limits.maxRuntimeSeconds ?? DEFAULT_RUNTIME_SECONDS;
  const spotWaitSeconds = capacity === 'spot' ? maxRuntimeSeconds + SPOT_PATIENCE_SECONDS : undefined;
  return {
    ...limits,
    maxRuntimeSeconds,
    maxWaitSeconds: limits.maxWaitSeconds ?? spotWaitSeconds,
    maxAttempts: limits.maxAttempts ?? 20,
    retryInternalErrors: limits.retryInternalErrors ?? 5,
  };
}

function resolveCompute(compute: RunFile['compute']): ComputeSpec {
  const size = compute.instanceCount ?? 1;
  return {
    ...compute,
    instanceType: compute.instanceType ?? '',
    instanceCount: typeof size === 'number' ? size : size.max,
    ...(typeof size !== 'number' && { elastic: size }),
    spareInstances: compute.spareInstances ?? 0,
    instanceGroups: compute.instanceGroups ?? [],
    alternatives: compute.alternatives ?? [],
    capacity: compute.capacity ?? (compute.trainingPlanArn ? 'training-plan' : 'on-demand'),
    keepAliveSeconds: compute.keepAliveSeconds ?? 0,
  };
}

/** An elastic run at one of its sizes; values that depend on the number of hosts are adjusted. */
export function onInstances(run: RunSpec, instanceCount: number): RunSpec {
  const compute = { ...run.compute, instanceCount };
  const efa = run.written.network?.efa ?? (usesEfa(compute) ? 'required' : 'off');
  return { ...run, compute, network: { ...run.network, efa } };
}

/** The run on one of its alternatives, which the service may choose instead of the first type. */
export function onAlternative(run: RunSpec, alternative: ComputeSpec['alternatives'][number]): RunSpec {
  const { instanceType, instanceCount = run.compute.instanceCount } = alternative;
  return { ...run, compute: { ...run.compute, instanceType, instanceCount, alternatives: [] } };
}

/** The groups of the cluster, without its spare hosts; the plain form is one group without a name. */
export function instanceGroupsOf(
  compute: ComputeSpec,
): { name: string; instanceType: string; instanceCount: number }[] {
  if (compute.instanceGroups.length > 0) return compute.instanceGroups;
  return [{ name: '', instanceType: compute.instanceType, instanceCount: compute.instanceCount }];
}

/** The check of each host before training: quick on GPUs if the driver starts the run. */
export function healthCheckOf(run: Pick<RunSpec, 'kind' | 'compute' | 'distribution'>): HealthCheck {
  if (run.compute.healthCheck) return run.compute.healthCheck;
  const examines = run.kind === 'training' && run.distribution.contract === 'entrypoint';
  return examines && hasGpus(run) ? 'quick' : 'off';
}

/** Whether a host that trains has GPUs. */
export function hasGpus(run: Pick<RunSpec, 'compute' | 'distribution'>): boolean {
  return trainingGroupsOf(run).some(({ instanceType }) => findInstanceType(instanceType)?.accelerator?.kind === 'gpu');
}

/**
 * The groups as the job requests them, including spare hosts: for requests, cost, and quotas. A heterogeneous cluster has no spares (rule
 * compute/spare-hosts).
 */
export function requestedGroupsOf(compute: ComputeSpec): ReturnType<typeof instanceGroupsOf> {
  const spares = compute.instanceGroups.length > 0 ? 0 : compute.spareInstances;
  return instanceGroupsOf(compute).map((g) => ({ ...g, instanceCount: g.instanceCount + spares }));
}

/** The same for alternatives: each has the same number of spare hosts in addition to its own count. */
export function requestedAlternativesOf(compute: ComputeSpec) {
  return compute.alternatives.map(({ instanceCount = compute.instanceCount, ...alternative }) => ({
    ...alternative,
    instanceCount: instanceCount + compute.spareInstances,
  }));
}

/** The groups whose hosts train: those in `distribution.instanceGroups`, otherwise all. */
export function trainingGroupsOf(run: Pick<RunSpec, 'compute'> & { distribution: { instanceGroups: string[] } }) {
  const groups = instanceGroupsOf(run.compute);
  const named = run.distribution.instanceGroups;
  return named.length === 0 ? groups : groups.filter((g) => named.includes(g.name));
}

/** Total number of hosts of several groups. */
export const hostCount = (groups: readonly { instanceCount: number }[]): number =>
  groups.reduce((sum, { instanceCount }) => sum + instanceCount, 0);

/** Ranks of the run: processes per host x hosts that train. */
export function worldSize(run: Pick<RunSpec, 'compute' | 'distribution'>): number {
  return hostCount(trainingGroupsOf(run)) * run.distribution.processesPerHost;
}

/** Number of sequences per sample, the unit of `microBatchSize` and `globalBatchSize`: a preference is a pair. */
const sequencesPerSample = ({ objective }: TrainingSpec): 1 | 2 => (objective === 'dpo' ? 2 : 1);

/** Steps of the whole run: `steps`, or the number that follows from `totalTokens`; undefined when the run file gives neither. */
export function totalSteps(training: TrainingSpec): number | undefined {
  const { steps, totalTokens, globalBatchSize, sequenceLength } = training;
  if (steps !== undefined) return steps;
  if (totalTokens === undefined || !globalBatchSize || !sequenceLength) return undefined;
  return Math.ceil(totalTokens / (globalBatchSize * sequenceLength * sequencesPerSample(training)));
}

function usesEfa(compute: ComputeSpec): boolean {
  const groups = instanceGroupsOf(compute);
  return hostCount(groups) > 1 && groups.some((g) => hasEfa(g.instanceType));
}

function resolveDistribution(file: RunFile, compute: ComputeSpec): DistributionSpec {
  const given = file.distribution ?? {};
  const imageKind = file.image?.kind ?? 'environment';
  const library = given.library ?? (file.code.source === 'builtin' ? 'fsdp' : 'custom');
  const groups = trainingGroupsOf({ compute, distribution: { instanceGroups: given.instanceGroups ?? [] } });
  const accelerated = groups.some((g) => acceleratorCount(g.instanceType) > 0);
  const contract = given.contract ?? defaultContract(file, library, imageKind);
  const collectives = given.collectives ?? 'auto';
  const usual = accelerated ? 'nccl' : 'gloo';
  const launcher = given.launcher ?? defaultLauncher(file.code, { library, contract, collectives }, accelerated);
  const first = groups[0]?.instanceType ?? '';
  return {
    library,
    launcher,
    collectives: collectives === 'auto' ? usual : collectives,
    collectivesAuto: collectives === 'auto',
    contract,
    processesPerHostGiven: given.processesPerHost,
    processesPerHost:
      given.processesPerHost ?? (launcher === 'script' ? 1 : defaultProcessesPerHost(first, file.environmentVariables)),
    parameters: given.parameters ?? {},
    mpiOptions: given.mpiOptions ?? '',
    instanceGroups: given.instanceGroups ?? [],
  };
}

function defaultContract(file: RunFile, library: string, imageKind: string): Contract {
  if (file.code.source === CODE_IN_IMAGE) return 'container';
  return library === 'smp-v1' || imageKind === 'huggingface' ? 'toolkit' : 'entrypoint';
}

const TORCHRUN_LIBRARIES = ['fsdp', 'ddp', 'smp-v2', 'deepspeed', 'megatron'];

function defaultLauncher(
  code: RunFile['code'],
  { library, contract, collectives }: { library: string; contract: string; collectives: string },
  accelerated: boolean,
): Launcher {
  if (library === 'smp-v1') return 'mpi';
  // A step of data needs no ranks: torchrun would import PyTorch.
  if (contract === 'container' || (builtinOf(code.source) && code.source !== 'builtin')) return 'script';
  if (collectives === 'smddp' && contract === 'toolkit') return 'mpi';
  if (TORCHRUN_LIBRARIES.includes(library)) return 'torchrun';
  const entryPoint = code.entryPoint ?? 'train.py';
  return accelerated && entryPoint.endsWith('.py') ? 'torchrun' : 'script';
}

function resolveTraining(file: RunFile, compute: ComputeSpec): TrainingSpec {
  const given = file.training ?? {};
  const { lora, ...rest } = given;
  return {
    activationCheckpointing: 'none',
    activationOffload: false,
    seed: 1234,
    ...rest,
    precision: given.precision ?? defaultPrecision(compute),
    ...(lora && {
      lora: {
        rank: lora.rank,
        alpha: lora.alpha ?? 2 * lora.rank,
        targets: lora.targets ?? ['q_proj', 'v_proj'],
        ...(lora.quantization && { quantization: lora.quantization }),
      },
    }),
  };
}

/** bf16 if the type supports it; fp16 on older GPUs; fp32 on CPUs. */
function defaultPrecision(compute: ComputeSpec): TrainingSpec['precision'] {
  const accelerator = findInstanceType(instanceGroupsOf(compute)[0]?.instanceType ?? '')?.accelerator;
  if (!accelerator) return 'fp32';
  return lacksBf16(accelerator) ? 'fp16' : 'bf16';
}

function resolveCheckpoints(file: RunFile, builtin: boolean): RunSpec['checkpoints'] {
  const given = file.checkpoints;
  const { localPath, ...rest } = given ?? {};
  const writable = (file.data ?? []).filter((c) => c.fsxLustre?.access === 'rw');
  // DeepSpeed writes to a folder.
  const direct = builtin && file.distribution?.library !== 'deepspeed';
  const marker = TRAINER_CHECKPOINTS[file.progress?.format ?? 'auto']?.marker;
  const mode = given?.mode ?? (direct ? 'direct' : given || builtin ? 'managed' : 'none');
  return {
    s3: 's3://{checkpointBucket}/runs/{team}/{runId}/',
    intervalMinutes: 'auto',
    keep: 3,
    ...(marker && !builtin && mode !== 'none' && { committedMarker: marker }),
    ...rest,
    mode,
    localPath: localPath ?? '/opt/ml/checkpoints',
    channel: given?.channel ?? (mode === 'fsx' && writable.length === 1 ? writable[0]?.channel : undefined),
  };
}
