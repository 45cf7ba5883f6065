import type { ModelShape } from '../catalog/model/shape';
import type { RunFile } from './run-file';

type Section<K extends keyof RunFile> = NonNullable<RunFile[K]>;

/** Name of a library; lib/core/distribution lists them. */
export type Library = string;
/** What starts the processes of a run. */
export type Launcher = 'torchrun' | 'mpi' | 'ray' | 'script';
/** The library that moves tensors between ranks. */
export type Collectives = 'nccl' | 'smddp' | 'gloo';
/** How the container is started: with the driver as its entrypoint, with sagemaker-training, or with the image's own entrypoint. */
export type Contract = 'entrypoint' | 'toolkit' | 'container';
/** Where the image of a run comes from. */
export type ImageKind = 'environment' | 'dlc' | 'smp' | 'huggingface' | 'uri';
/** How the instances of a run are paid for. */
export type Capacity = 'on-demand' | 'spot' | 'training-plan';
/** How checkpoints are stored: by the trainer, by SageMaker, on a file system, or not at all. */
export type CheckpointMode = 'direct' | 'managed' | 'fsx' | 'none';
/** Precision of the matrix products. */
export type Precision = 'bf16' | 'fp16' | 'fp32' | 'fp8' | 'mxfp8' | 'nvfp4';

/** Instances of one type in a heterogeneous cluster. */
export interface InstanceGroup {
  name: string;
  instanceType: string;
  instanceCount: number;
}

/** Check of a host before the first start of its ranks; docs/health-check.md. */
export type HealthCheck = 'off' | 'quick' | 'full';

/** Section `compute` with its defaults. */
export interface ComputeSpec {
  /** Empty when `instanceGroups` describes the cluster. */
  instanceType: string;
  /** Number of hosts that train; for an elastic run the maximum, until an attempt has its size. */
  instanceCount: number;
  /** Each attempt uses as many hosts as are available within this range. @default - always `instanceCount` */
  elastic?: { min: number; max: number };
  /** Number of additional hosts in the job, which replace hosts with broken hardware. */
  spareInstances: number;
  instanceGroups: InstanceGroup[];
  alternatives: { instanceType: string; instanceCount?: number; trainingPlanArn?: string }[];
  capacity: Capacity;
  trainingPlanArn?: string;
  volumeSizeGiB?: number;
  keepAliveSeconds: number;
  /** As written; `healthCheckOf` applies the default. */
  healthCheck?: HealthCheck;
  /** SageMaker's own check before the start. @default - the service's default */
  infraCheck?: boolean;
  /** Placement on UltraServers. @default - the service places instances */
  placement?: { multipleJobs?: boolean; ultraServers?: { id?: string; instanceCount: number }[] };
}

/** Section `distribution` with its defaults. */
export interface DistributionSpec {
  library: Library;
  launcher: Launcher;
  collectives: Collectives;
  /** Whether the file does not set the backend. */
  collectivesAuto: boolean;
  contract: Contract;
  /** As in the run file; undefined = one per accelerator. */
  processesPerHostGiven?: number;
  /** Number of processes per host of the groups that take part. */
  processesPerHost: number;
  parameters: Record<string, unknown>;
  mpiOptions: string;
  /** Names of the groups that take part; empty = the whole cluster. */
  instanceGroups: string[];
}

/** Part of a training run in which samples come from the same channels. */
export type MixturePhase = NonNullable<Section<'training'>['mixture']>[number];

/** Section `training` with its defaults. */
export interface TrainingSpec {
  sequenceLength?: number;
  microBatchSize?: number;
  globalBatchSize?: number;
  totalTokens?: number;
  steps?: number;
  precision: Precision;
  /** Granularity of the scales under `fp8`. @default - `tensorwise` */
  fp8Recipe?: 'tensorwise' | 'rowwise' | 'blockwise';
  activationCheckpointing: 'none' | 'selective' | 'full';
  activationOffload: boolean;
  seed: number;
  lora?: LoraSpec;
  /** @default - `pretrain` */
  objective?: 'pretrain' | 'sft' | 'dpo';
  /** Whether a mask separates the documents within a row of text. @default false */
  documentMask?: boolean;
  /** Channels from which samples are drawn. @default - the one in the argument data-channel */
  mixture?: MixturePhase[];
}

/** Low-rank adapters. */
export interface LoraSpec {
  rank: number;
  alpha: number;
  targets: string[];
  /** Format of the frozen weights. @default - they keep their precision */
  quantization?: 'nf4';
}

/** The model, however the run file describes it. */
export interface ModelSpec {
  preset?: string;
  weights?: string;
  architecture: ModelShape & Required<Pick<ModelShape, 'headSize' | 'ropeTheta' | 'normEpsilon'>>;
}

/** One data channel. */
export type ChannelSpec = NonNullable<RunFile['data']>[number];

/** `checkpoints.memory` as written. */
export type MemorySetting = 'auto' | 'off' | Partial<MemoryCopies>;

/** Copies of the state in host memory. */
export interface MemoryCopies {
  everySteps: 'auto' | number;
  /** 2: one of them is on another host. */
  copies: 1 | 2;
}

/** A run with every default filled in. Placeholders such as `{dataBucket}` are not replaced yet. */
export interface RunSpec {
  name: string;
  kind: 'training' | 'processing';
  environment?: string;
  after: string[];
  priority: number;
  /** Whether the queue may ask its job to save and exit in favour of another run. @default - not preemptible */
  preemptible?: true;
  tags: Record<string, string>;
  model?: ModelSpec;
  training: TrainingSpec;
  /** Options of the tokenise step. @default - the tokenizer's template, and the loss on the assistant's messages */
  tokenizer?: NonNullable<RunFile['tokenizer']>;
  progress: {
    format: NonNullable<Section<'progress'>['format']>;
    stepRegex?: string;
    lossRegex?: string;
    startupMinutes: number;
    silenceMinutes: number;
  };
  code: {
    source: string;
    /** The built-in trainer, tokenise or fetch step; undefined = custom code. */
    builtin?: 'builtin' | 'builtin-tokenize' | 'builtin-fetch';
    entryPoint: string;
    arguments: NonNullable<Section<'code'>['arguments']>;
    requirements?: string;
    /** Digest of an archive in S3, which the driver verifies. */
    sha256?: string;
    /** With contract container: the entrypoint that the API sets. @default - the entrypoint of the image */
    containerEntrypoint?: string[];
    /** With contract container. @default - the arguments of the image */
    containerArguments?: string[];
  };
  image: {
    kind: ImageKind;
    version?: string;
    uri?: string;
    /** @default - `platform`, Amazon ECR */
    repositoryAccess?: 'platform' | 'vpc';
    credentialsProviderArn?: string;
  };
  compute: ComputeSpec;
  distribution: DistributionSpec;
  data: ChannelSpec[];
  checkpoints: {
    mode: CheckpointMode;
    s3: string;
    localPath: string;
    channel?: string;
    intervalMinutes: 'auto' | number;
    /** @default - auto: memoryCopies() in lib/core/distribution */
    memory?: MemorySetting;
    keep: number;
    committedMarker?: string;
    startFrom?: string;
  };
  /** @default - a prefix of the run, uncompressed */
  output?: { s3?: string; compression?: 'none' | 'gzip' };
  limits: {
    maxRuntimeSeconds: number;
    maxWaitSeconds?: number;
    maxPendingSeconds?: number;
    maxCostUsd?: number;
    maxAttempts: number;
    retryInternalErrors: number;
  };
  network: {
    isolation: boolean;
    interContainerEncryption: boolean;
    efa: 'required' | 'preferred' | 'off';
    efaVariables: 'auto' | 'guide-2023';
  };
  observability: {
    metrics: { name: string; regex: string }[];
    profiler: 'off' | 'pytorch' | 'sagemaker';
    tensorBoard: boolean;
    remoteDebug: boolean;
    wandb?: { project: string; entity?: string; baseUrl?: string };
    mlflow?: { arn: string; experiment?: string };
  };
  hyperparameters: Record<string, unknown>;
  environmentVariables: Record<string, string>;
  /** Variable names, each with the secret or parameter that contains the value; absent = none. */
  secrets?: Record<string, string>;
  acknowledge: { rule: string; reason: string }[];
  /** The file as parsed, for rules that distinguish written values from defaults. */
  written: RunFile;
}
