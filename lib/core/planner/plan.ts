import { CONSTANTS, type Constants, MEMORY_CONSTANTS, type MemoryConstants } from './constants';
import { type Gpu, gpuOf } from './gpu';
import { domainGpusOf, type LayoutInput, layoutProblem, microBatchesOf, tokensPerStep, worldSizeOf } from './layout';
import { type MemoryGiB, memoryOf } from './memory/memory';
import { attentionFlopsPerToken, headsOf, modelFlopsPerToken } from './model-size';
import { lowPrecisionOf } from './time/compute';
import { type StepSeconds, stepSeconds } from './time/step-time';

/**
 * Half width of the 80 % interval in ln(tokens per second), from the errors on whole sources that were held out of the fit
 * (`bench/fit-planner.ts --cv`): computation alone is predicted to within 8 %; communication is predicted less well, and so are libraries
 * whose versions differ most.
 */
const KERNELS = 0.08;
const COMMUNICATION = 0.25;
const LIBRARY: Readonly<Partial<Record<LayoutInput['stack'], number>>> = {
  'megatron-legacy': 0.03,
  nanotron: 0.05,
  'smp-v1': 0.05,
  deepspeed: 0.12,
};

/**
 * Uncertainty of layouts that no run has measured (preference training, multi-token prediction modules, UltraServers, attention to selected
 * tokens, the built-in trainer on several nodes), or six alone (adapters).
 */
const UNMEASURED = 0.1;

/** Linear recurrences, counted by arithmetic: Nemotron 3 is planned 27 % too slow to 84 % too fast, by library and GPU (docs/planner.md). */
const RECURRENCE = 0.2;

/** Matrices in 4 bits: published runs spend 2 to 7 times the traffic of unpacking on it, depending on library and GPU (docs/planner.md). */
const QUANTIZED = 0.15;

/**
 * Mixture-of-experts models: medians of published runs are up to 36 % off, and versions of one library differ by up to 77 %
 * (docs/planner.md).
 */
const MIXTURE = 0.2;

/**
 * The same without Megatron's or Transformer Engine's kernels: implementations of Qwen3 30B under FSDP2 reach 3,075 to 11,340 tokens a second
 * on one node of H100 (https://huggingface.co/blog/nvidia/accelerating-fine-tuning-nvidia-nemo-automodel, 2026-11-29).
 */
const MIXTURE_OF_ANY_KERNELS = Math.hypot(MIXTURE, Math.log(11_340 / 3075) / 2);

/**
 * Tensor parallelism over nodes, where nothing hides a slow collective: over all GPUs of two and four p5 nodes of one cluster, published
 * AllReduces reach 362 and 160 GB/s (docs/planner.md).
 */
const TENSOR_OVER_NODES = Math.log(362 / 160);

const blocksOf = ({ model }: Pick<LayoutInput, 'model'>) => [model, ...(model.kinds ?? []).map(({ block }) => block)];

/** Whether some layers select what they attend to, or the like: its arithmetic is counted, but no published run measures it. */
const isUnusual = (l: LayoutInput) =>
  blocksOf(l).some(({ attention, streams, expertHidden }) => attention ?? streams ?? expertHidden);

/** Whether some layers compute a linear recurrence. */
export const hasRecurrence = (l: Pick<LayoutInput, 'model'>): boolean =>
  blocksOf(l).some(({ recurrence }) => recurrence !== undefined);

/** Whether the built-in trainer runs on several nodes, of which no run has been measured. */
export const isOwnOverNodes = (l: LayoutInput): boolean => l.isOwnTrainer === true && l.nodes > 1;

const isUnmeasured = (l: LayoutInput) =>
  l.preferences !== undefined ||
  l.adapters !== undefined ||
  (l.model.mtpLayers ?? 0) > 0 ||
  isUnusual(l) ||
  (l.domainNodes ?? 1) > 1 ||
  isOwnOverNodes(l);

/** Whether experts are computed by kernels of which published runs say too little. */
export const hasUnknownExperts = ({ model, stack, kernels }: LayoutInput): boolean =>
  model.experts > 1 && !stack.startsWith('megatron') && kernels !== 'fused';

/** Whether tensor parallelism needs the network between nodes. */
export const hasTensorOverNodes = (l: LayoutInput): boolean => l.tensor > domainGpusOf(l);

const mixtureOf = (l: LayoutInput): number =>
  hasUnknownExperts(l) ? MIXTURE_OF_ANY_KERNELS : l.model.experts > 1 ? MIXTURE : 0;

/** Time of communication, by how much of it is uncertain: the half width of the interval that it adds, times the step's seconds. */
function communicationOf(l: LayoutInput, step: StepSeconds): number {
  const others =
    step.dataParallel + step.pipelineParallel + step.bubble + step.contextParallel + step.expertParallel + step.offload;
  return COMMUNICATION * others + (hasTensorOverNodes(l) ? TENSOR_OVER_NODES : COMMUNICATION) * step.tensorParallel;
}

/** The 80 % interval around `tokensPerSecond`. */
function interval80(tokensPerSecond: number, l: LayoutInput, step: StepSeconds): [low: number, high: number] {
  const half =
    KERNELS +
    communicationOf(l, step) / step.total +
    (LIBRARY[l.stack] ?? 0) +
    (hasRecurrence(l) ? RECURRENCE : isUnmeasured(l) ? UNMEASURED : 0) +
    (l.quantized ? QUANTIZED : 0) +
    mixtureOf(l) +
    (lowPrecisionOf(l)?.unsure ?? 0);
  return [tokensPerSecond * Math.exp(-half), tokensPerSecond * Math.exp(half)];
}

/** Whether the layout fits into GPU memory: `tight` is within the margin of error. */
export type Fits = 'fits' | 'tight' | 'oom';

/** Memory and speed of one layout. */
export type LayoutPlan = Exclude<ReturnType<typeof planLayout>, string>;

/** The fitted values of the planner. */
export type PlannerConstants = Readonly<{ time: Constants; memory: MemoryConstants }>;

/** The constants for which docs/planner.md reports errors. */
export const PLANNER_CONSTANTS: PlannerConstants = { time: CONSTANTS, memory: MEMORY_CONSTANTS };

/** CUDA context of one process, and NCCL's buffers per kind of communication group; both are outside the allocator. */
const CONTEXT_GIB = 0.6;
const NCCL_GIB_PER_GROUP = 0.6;
/** Above this share of the available memory the allocator has to retry, and the step becomes slower. */
const TIGHT_SHARE = 0.93;

/** Memory, step time and utilisation of one layout; a string explains why it cannot run. */
export function planLayout(l: LayoutInput, k: PlannerConstants = PLANNER_CONSTANTS) {
  const problem = layoutProblem(l);
  if (problem) return problem;
  const gpu = gpuOf(l.accelerator, k.time);
  if (!gpu) return `${l.accelerator.model} has no known matrix throughput`;
  const available = availableGiB(l, gpu);
  const memoryGiB = memoryOf(l, k.memory, available);
  const step = stepSeconds(l, gpu, k.time);
  const tokensPerSecondPerGpu = tokensPerStep(l) / step.total / worldSizeOf(l);
  const flops = tokensPerSecondPerGpu * modelFlopsPerToken(l.model, l.sequence);
  return {
    fits: memoryVerdict(memoryGiB, available),
    memoryGiB,
    /** Memory that the allocator may reserve on one GPU. */
    availableGiB: available,
    step,
    microBatches: microBatchesOf(l),
    tokensPerSecondPerGpu,
    modelTflopsPerGpu: flops / 1e12,
    hardwareTflopsPerGpu: (flops / 1e12) * hardwareShare(l),
    /** Model FLOPs divided by the dense bf16 peak. */
    mfu: flops / gpu.peakFlops,
    /** Of tokensPerSecondPerGpu. */
    interval80: interval80(tokensPerSecondPerGpu, l, step),
  };
}

/** Weights, gradients and optimizer: memory that follows from arithmetic alone. */
export const stateGiB = (memory: Pick<MemoryGiB, 'parameters' | 'gradients' | 'optimizer'>) =>
  memory.parameters + memory.gradients + memory.optimizer;

/** Memory that the allocator of one rank may reserve. */
export const availableGiB = (l: LayoutInput, gpu: Gpu) =>
  gpu.memoryGiB - CONTEXT_GIB - NCCL_GIB_PER_GROUP * groupKinds(l);

const groupKinds = (l: LayoutInput) =>
  [l.tensor, l.pipeline, l.context, l.shard * l.replicate].reduce((kinds, size) => kinds + (size > 1 ? 1 : 0), 0);

/** The allocator releases what it can before it fails, which makes a layout tight. `memory` must be the result of memoryOf. */
export function memoryVerdict(memory: MemoryGiB, available: number): Fits {
  if (memory.total > available) return 'oom';
  return memory.total > TIGHT_SHARE * available ? 'tight' : 'fits';
}

/**
 * Executed FLOPs divided by model FLOPs: recomputed blocks and a reference each add one forward pass, a third of the training FLOPs; frozen
 * weights have no weight gradients, which saves another third of their products.
 */
function hardwareShare(l: LayoutInput): number {
  const all = modelFlopsPerToken(l.model, l.sequence);
  const head = 6 * headsOf(l.model) * l.model.vocabulary * l.model.hidden;
  const attention = attentionFlopsPerToken(l.model, l.sequence);
  const extra = {
    none: 0,
    full: all - head,
    block: (all - head) / 2,
    op: (all - head - attention) / 2,
    products: 0,
    core: attention,
  }[l.recompute];
  const reference = l.preferences ? all : 0;
  const frozen = l.adapters === undefined ? 0 : all - attention;
  return 1 + (extra + reference - frozen) / 3 / all;
}
