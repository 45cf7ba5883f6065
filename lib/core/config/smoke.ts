import { findInstanceType } from '../catalog/instances/instances';
import type { ModelShape } from '../catalog/model/shape';
import { worldSize } from './resolve-run';
import type { RunSpec } from './run-spec';

/** `account`: the same instance type; `sandbox`: CPU instances of the embedded AWS. */
export type SmokePlace = 'account' | 'sandbox';

/** Number of steps that a smoke run never reaches, because it is stopped; how often it saves, and the minimum duration of a step. */
const STEPS = 1000;
const SAVE_EVERY = 4;
const STEP_SECONDS = 0.5;
const MAX_SECONDS = 3600;
const MAX_HOSTS = 2;
const MAX_LAYERS = 4;
const SANDBOX = { instanceType: 'ml.m5.xlarge', layers: 2, headSize: 16, sequenceLength: 128, mostHeadsPerGroup: 2 };

/** Degrees that split a model: they must not change, because otherwise another program would be tested. */
const MODEL_DEGREES = [
  'tensor_parallel_degree',
  'context_parallel_degree',
  'expert_parallel_degree',
  'pipeline_parallel_degree',
  'tensor-model-parallel-size',
  'pipeline-model-parallel-size',
  'context-parallel-size',
];
/** Degrees that shard state over the remaining ranks: they shrink with the cluster. */
const SHARD_DEGREES = ['shard_degree', 'hybrid_shard_degree', 'sharded_data_parallel_degree'];

const degreeOf = (run: RunSpec, name: string): number => {
  const value = run.distribution.parameters[name];
  return typeof value === 'number' ? value : 1;
};

const productOf = (run: RunSpec, degrees: readonly string[]): number =>
  degrees.reduce((product, name) => product * degreeOf(run, name), 1);

/**
 * The `--set` overrides that make a run small: the same code, library and model-splitting degrees on few hosts, with few layers and steps,
 * and batches that are still divisible. The rules check the result like any other run.
 */
export function smokeOverrides(run: RunSpec, place: SmokePlace): string[] {
  const split = productOf(run, MODEL_DEGREES);
  const cluster = place === 'sandbox' ? sandboxCluster(split) : accountCluster(run, split);
  const ranks = cluster.hosts * cluster.processesPerHost;
  return [
    `name=${run.name.slice(0, 26).replace(/-$/, '')}-smoke`,
    'after=',
    'compute.alternatives=',
    ...(run.compute.capacity === 'spot' || place === 'sandbox' ? ['compute.capacity='] : []),
    `compute.instanceCount=${cluster.hosts}`,
    'compute.spareInstances=',
    ...(place === 'sandbox' ? sandboxOverrides(run, cluster.processesPerHost) : []),
    `limits.maxRuntimeSeconds=${Math.min(run.limits.maxRuntimeSeconds, MAX_SECONDS)}`,
    ...degreeOverrides(run, Math.max(1, Math.floor(ranks / split))),
    ...(run.code.builtin
      ? trainerOverrides(run, place, Math.max(1, Math.floor(ranks / dataSplit(run))))
      : ['environmentVariables.SLIPWAY_SMOKE="1"']),
  ];
}

/** Experts are divided among ranks that read different data; the other degrees are not. */
const dataSplit = (run: RunSpec): number =>
  productOf(
    run,
    MODEL_DEGREES.filter((name) => !name.startsWith('expert')),
  );

function accountCluster(run: RunSpec, split: number) {
  const { processesPerHost } = run.distribution;
  const needed = Math.ceil(split / Math.max(1, processesPerHost));
  return { hosts: Math.max(needed, Math.min(MAX_HOSTS, run.compute.instanceCount)), processesPerHost };
}

/** Two hosts; a model that is split gets at least two ranks per host, so that communication inside and between hosts is tested. */
const sandboxCluster = (split: number) => ({
  hosts: MAX_HOSTS,
  processesPerHost: split === 1 ? 1 : Math.max(2, Math.ceil(split / MAX_HOSTS)),
});

/** The launcher is set explicitly: on a CPU type custom code would otherwise be a plain script. */
const sandboxOverrides = (run: RunSpec, processesPerHost: number): string[] => [
  `compute.instanceType=${SANDBOX.instanceType}`,
  `distribution.launcher=${run.distribution.launcher}`,
  'compute.volumeSizeGiB=',
  'compute.keepAliveSeconds=',
  'image=',
  `distribution.processesPerHost=${processesPerHost}`,
  'distribution.collectives=',
];

function degreeOverrides(run: RunSpec, left: number): string[] {
  const shrunk = SHARD_DEGREES.filter((name) => degreeOf(run, name) > 1).map(
    (name) => `distribution.parameters.${name}=${largestDivisor(left, degreeOf(run, name))}`,
  );
  return 'replicate_degree' in run.distribution.parameters
    ? [...shrunk, 'distribution.parameters.replicate_degree=']
    : shrunk;
}

function largestDivisor(of: number, atMost: number): number {
  for (let divisor = Math.min(of, atMost); divisor > 1; divisor--) if (of % divisor === 0) return divisor;
  return 1;
}

/** Requirements of the built-in trainer: a model with few layers, an end, checkpoints, and steps that can be interrupted. */
function trainerOverrides(run: RunSpec, place: SmokePlace, dataRanks: number): string[] {
  const { microBatchSize = 1, globalBatchSize, sequenceLength = 2048 } = run.training;
  const full = (microBatchSize * worldSize(run)) / dataSplit(run);
  const accumulation = globalBatchSize && full > 0 && globalBatchSize / full >= 2 ? 2 : 1;
  const length = place === 'sandbox' ? Math.min(SANDBOX.sequenceLength, sequenceLength) : sequenceLength;
  return [
    ...(run.model
      ? [
          'model.preset=',
          'model.config=',
          'model.weights=',
          `model.architecture=${JSON.stringify(smallModel(run, place))}`,
        ]
      : []),
    // A checkpoint is of the whole model, and may be beyond the last step.
    ...(run.checkpoints.startFrom ? ['checkpoints.startFrom='] : []),
    'training.totalTokens=',
    `training.steps=${STEPS}`,
    `training.sequenceLength=${length}`,
    `training.microBatchSize=${microBatchSize}`,
    `training.globalBatchSize=${microBatchSize * dataRanks * accumulation}`,
    ...(place === 'sandbox'
      ? ['training.precision=fp32', 'training.fp8Recipe=', 'distribution.parameters.compile=']
      : []),
    `code.arguments.save-every-steps=${SAVE_EVERY}`,
    `code.arguments.minimum-step-seconds=${STEP_SECONDS}`,
    'code.arguments.warmup-steps=2',
  ];
}

/** Fewer layers; in the sandbox also smaller ones, with heads and experts that the degrees still divide. */
function smallModel(run: RunSpec, place: SmokePlace): Partial<ModelShape> {
  const shape = run.model?.architecture;
  if (!shape) return {};
  if (place === 'account') return writableShape(shape, Math.min(shape.layers, MAX_LAYERS));
  const tensor = degreeOf(run, 'tensor_parallel_degree');
  const kvHeads = Math.min(shape.kvHeads, Math.max(tensor, 2));
  const attentionHeads = kvHeads * Math.min(shape.attentionHeads / shape.kvHeads, SANDBOX.mostHeadsPerGroup);
  const hiddenSize = attentionHeads * SANDBOX.headSize;
  const { experts, latentAttention } = shape;
  const small = { layers: SANDBOX.layers, kvHeads, attentionHeads, hiddenSize, headSize: SANDBOX.headSize };
  return {
    ...writableShape(shape, SANDBOX.layers),
    ...small,
    ffnHiddenSize: 2 * hiddenSize,
    ...(shape.expertFfnHiddenSize && { expertFfnHiddenSize: hiddenSize }),
    ...(latentAttention && {
      latentAttention: { qRank: 32, kvRank: 32, nopeHeadSize: 16, ropeHeadSize: 16, valueHeadSize: 16 },
    }),
    ...(experts && { experts: Math.max(degreeOf(run, 'expert_parallel_degree'), Math.min(experts, 4)) }),
  };
}

/** The part of a model with fewer layers that a run file can express: options that exist only in its family are omitted. */
function writableShape(shape: ModelShape, layers: number): ModelShape {
  const { family: _family, unrotatedLayers: _unrotated, denseLayers: dense, slidingWindow: window, ...rest } = shape;
  const held = (list: number[]) => list.filter((layer) => layer < layers);
  const denseLayers = typeof dense === 'object' ? held(dense) : dense && Math.min(dense, layers - 1);
  const pattern = window && (typeof window.pattern === 'object' ? held(window.pattern) : window.pattern);
  return {
    ...rest,
    layers,
    ...(hasAny(denseLayers) && { denseLayers }),
    ...(window && hasAny(pattern) && { slidingWindow: { ...window, pattern: pattern ?? 'all' } }),
  };
}

const hasAny = (value: unknown): boolean => (Array.isArray(value) ? value.length > 0 : Boolean(value));

/** Whether the type has accelerators, which the embedded AWS does not have; its jobs run on this machine's CPUs. */
export const needsAccelerator = (run: RunSpec): boolean =>
  !['fsdp', 'ddp', 'custom'].includes(run.distribution.library) &&
  !!findInstanceType(run.compute.instanceType)?.accelerator;
