import type { ModelShape } from '../catalog/model/shape';
import type { Filled } from './formats/field';
import type { RunFile } from './run-file';

type Section<K extends keyof RunFile> = NonNullable<RunFile[K]>;
type Resolved<K extends keyof RunFile, Given extends keyof Section<K>> = Filled<Section<K>, Given>;

/** What starts the processes of a run. */
export type Launcher = DistributionSpec['launcher'];
/** The library that moves tensors between ranks. */
export type Collectives = 'nccl' | 'smddp' | 'gloo';
/** How the container is started: with the driver as its entrypoint, with sagemaker-training, or with the image's own entrypoint. */
export type Contract = DistributionSpec['contract'];
/** Where the image of a run comes from. */
export type ImageKind = RunSpec['image']['kind'];

/** Check of a host before the first start of its ranks; docs/health-check.md. */
export type HealthCheck = 'off' | 'quick' | 'full';

/** Section `compute` with its defaults. `instanceType` is empty when `instanceGroups` describes the cluster. */
export interface ComputeSpec
  extends Omit<
    Resolved<
      'compute',
      'instanceType' | 'spareInstances' | 'instanceGroups' | 'alternatives' | 'capacity' | 'keepAliveSeconds'
    >,
    'instanceCount'
  > {
  /** Number of hosts that train; for an elastic run the maximum, until an attempt has its size. */
  instanceCount: number;
  /** Each attempt uses as many hosts as are available within this range. @default - always `instanceCount` */
  elastic?: { min: number; max: number };
}

/** Section `distribution` with its defaults. */
export interface DistributionSpec extends Required<Section<'distribution'>> {
  collectives: Collectives;
  /** Whether the file does not set the backend. */
  collectivesAuto: boolean;
  /** As in the run file; undefined = one per accelerator. */
  processesPerHostGiven?: number;
  /** Names of the groups that take part; empty = the whole cluster. */
  instanceGroups: string[];
}

/** Part of a training run in which samples come from the same channels. */
export type MixturePhase = NonNullable<Section<'training'>['mixture']>[number];

/** Section `training` with its defaults. */
export interface TrainingSpec
  extends Omit<Resolved<'training', 'precision' | 'activationCheckpointing' | 'activationOffload' | 'seed'>, 'lora'> {
  lora?: Filled<NonNullable<Section<'training'>['lora']>, 'rank' | 'alpha' | 'targets'>;
}

/** The model, however the run file describes it. */
export interface ModelSpec {
  preset?: string;
  weights?: string;
  architecture: ModelShape & Required<Pick<ModelShape, 'headSize' | 'ropeTheta' | 'normEpsilon'>>;
}

export type ChannelSpec = NonNullable<RunFile['data']>[number];

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
  progress: Resolved<'progress', 'format' | 'startupMinutes' | 'silenceMinutes'>;
  code: Resolved<'code', 'entryPoint' | 'arguments'> & {
    /** The built-in trainer, tokenise or fetch step; undefined = custom code. */
    builtin?: 'builtin' | 'builtin-tokenize' | 'builtin-fetch';
  };
  image: Resolved<'image', 'kind'>;
  compute: ComputeSpec;
  distribution: DistributionSpec;
  data: ChannelSpec[];
  checkpoints: Resolved<'checkpoints', 'mode' | 's3' | 'localPath' | 'intervalMinutes' | 'keep'>;
  /** @default - a prefix of the run, uncompressed */
  output?: Section<'output'>;
  limits: Resolved<'limits', 'maxRuntimeSeconds' | 'maxAttempts' | 'retryInternalErrors'>;
  network: Required<Section<'network'>>;
  observability: Resolved<'observability', 'metrics' | 'profiler' | 'tensorBoard' | 'remoteDebug'>;
  hyperparameters: Record<string, unknown>;
  environmentVariables: Record<string, string>;
  /** Variable names, each with the secret or parameter that contains the value; absent = none. */
  secrets?: Record<string, string>;
  acknowledge: { rule: string; reason: string }[];
  /** The file as parsed, for rules that distinguish written values from defaults. */
  written: RunFile;
}
