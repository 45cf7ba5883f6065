import type { ModelShape } from '../catalog/model/shape';
import type { RunFile } from './run-file';

type Section<K extends keyof RunFile> = NonNullable<RunFile[K]>;

/** Name of a strategy; lib/distribution lists them. */
export type Library = string;
/** What starts the processes of a run. */
export type Launcher = 'torchrun' | 'mpi' | 'ray' | 'script';
/** The library that moves tensors between ranks. */
export type Collectives = 'nccl' | 'smddp' | 'gloo';
/** How the container is started: by the driver as its entry point, as sagemaker-training does it, or by its image. */
export type Contract = 'entrypoint' | 'toolkit' | 'container';
/** Where the image of a run comes from. */
export type ImageKind = 'environment' | 'dlc' | 'smp' | 'huggingface' | 'uri';
/** How the instances of a run are paid for. */
export type Capacity = 'on-demand' | 'spot' | 'training-plan';
/** Who moves checkpoints: the trainer, SageMaker, a file system, or nobody. */
export type CheckpointMode = 'direct' | 'managed' | 'fsx' | 'none';
/** Precision of the matrix products. */
export type Precision = 'bf16' | 'fp16' | 'fp32' | 'fp8' | 'mxfp8' | 'nvfp4';

/** Instances of one type in a heterogeneous cluster. */
export interface InstanceGroup {
  name: string;
  instanceType: string;
  instanceCount: number;
}

/** How a host is examined before its ranks start for the first time; docs/health-check.md. */
export type HealthCheck = 'off' | 'quick' | 'full';

/** Section `compute` with its defaults. */
export interface ComputeSpec {
  /** Empty when `instanceGroups` describes the cluster. */
  instanceType: string;
  /** Hosts that train: of an elastic run the most, until an attempt has its size. */
  instanceCount: number;
  /** Each attempt has as many hosts as there is room for. @default - always `instanceCount` */
  elastic?: { min: number; max: number };
  /** Hosts that the job has beside them, to take the place of one whose hardware broke. */
  spareInstances: number;
  instanceGroups: InstanceGroup[];
  alternatives: { instanceType: string; instanceCount?: number; trainingPlanArn?: string }[];
  capacity: Capacity;
  trainingPlanArn?: string;
  volumeSizeGiB?: number;
  keepAliveSeconds: number;
  /** As written; `healthCheckOf` has the default. */
  healthCheck?: HealthCheck;
  /** The service's own check before the start. @default - the service's default */
  infraCheck?: boolean;
  /** On UltraServers. @default - the service places instances */
  placement?: { multipleJobs?: boolean; ultraServers?: { id?: string; instanceCount: number }[] };
}

/** Section `distribution` with its defaults. */
export interface DistributionSpec {
  library: Library;
  launcher: Launcher;
  collectives: Collectives;
  /** Whether the file left the backend to us. */
  collectivesAuto: boolean;
  contract: Contract;
  /** As the run file says; undefined = one per accelerator. */
  processesPerHostGiven?: number;
  /** Processes a host of the taking-part groups runs. */
  processesPerHost: number;
  parameters: Record<string, unknown>;
  mpiOptions: string;
  /** Names of the groups that take part; empty = all of the cluster. */
  instanceGroups: string[];
}

/** Part of a training in which samples come from the same channels. */
export type MixturePhase = NonNullable<Section<'training'>['mixture']>[number];

/** Section `training` with its defaults. */
export interface TrainingSpec {
  sequenceLength?: number;
  microBatchSize?: number;
  globalBatchSize?: number;
  totalTokens?: number;
  steps?: number;
  precision: Precision;
  /** What shares a scale under `fp8`. @default - `tensorwise` */
  fp8Recipe?: 'tensorwise' | 'rowwise' | 'blockwise';
  activationCheckpointing: 'none' | 'selective' | 'full';
  activationOffload: boolean;
  seed: number;
  lora?: { rank: number; alpha: number; targets: string[] };
  /** @default - `pretrain` */
  objective?: 'pretrain' | 'sft' | 'dpo';
  /** Documents of one row of text do not see each other. @default false */
  documentMask?: boolean;
  /** Channels that samples come from. @default - the one that the argument data-channel names */
  mixture?: MixturePhase[];
}

/** The model, whichever way the run file describes it. */
export interface ModelSpec {
  preset?: string;
  weights?: string;
  architecture: ModelShape & Required<Pick<ModelShape, 'headSize' | 'ropeTheta' | 'normEpsilon'>>;
}

/** One data channel. */
export type ChannelSpec = NonNullable<RunFile['data']>[number];

/** A run with every default filled in. Placeholders such as `{dataBucket}` are still in it. */
export interface RunSpec {
  name: string;
  kind: 'training' | 'processing';
  environment?: string;
  after: string[];
  priority: number;
  /** The queue may ask its job to save and leave for a run that goes first. @default - it may not */
  preemptible?: true;
  tags: Record<string, string>;
  model?: ModelSpec;
  training: TrainingSpec;
  /** Of the tokenise step. @default - the template of the tokenizer, and the loss on what the assistant says */
  tokenizer?: NonNullable<RunFile['tokenizer']>;
  progress: { stepRegex?: string; lossRegex?: string; startupMinutes: number; silenceMinutes: number };
  code: {
    source: string;
    /** Our trainer or tokenise step: `builtin`, `builtin-tokenize`; undefined = the user's own code. */
    builtin?: 'builtin' | 'builtin-tokenize';
    entryPoint: string;
    arguments: NonNullable<Section<'code'>['arguments']>;
    requirements?: string;
    /** Of an archive in S3: what the driver holds it to. */
    sha256?: string;
    /** With contract container: what the API starts in the image. @default - the entrypoint of the image */
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
  /** Name of a variable, and the secret or parameter that holds its value; absent = none. */
  secrets?: Record<string, string>;
  acknowledge: { rule: string; reason: string }[];
  /** The file as it was read, for rules that ask what was written and what was filled in. */
  written: RunFile;
}
