import type { Constants } from './constants';
import { FITTED as CONSTANTS } from './fitted';
import { type Gpu, gpuOf } from './gpu';
import { interval80 } from './interval';
import { type LayoutInput, layoutProblem, microBatchesOf, tokensPerStep, worldSizeOf } from './layout';
import type { MemoryConstants } from './memory/constants';
import { FITTED_MEMORY as MEMORY_CONSTANTS } from './memory/fitted';
import { type MemoryGiB, memoryOf } from './memory/memory';
import { attentionFlopsPerToken, headsOf, modelFlopsPerToken } from './model-size';
import { type StepSeconds, stepSeconds } from './time/step-time';

/** Whether the layout fits into GPU memory: `tight` is within the margin of error. */
export type Fits = 'fits' | 'tight' | 'oom';

/** Memory and speed of one layout. */
export interface LayoutPlan {
  fits: Fits;
  memoryGiB: MemoryGiB;
  /** Memory that the allocator may reserve on one GPU. */
  availableGiB: number;
  step: StepSeconds;
  microBatches: number;
  tokensPerSecondPerGpu: number;
  modelTflopsPerGpu: number;
  hardwareTflopsPerGpu: number;
  /** Model FLOPs divided by the dense bf16 peak. */
  mfu: number;
  /** 80 % interval of tokensPerSecondPerGpu. */
  interval80: [low: number, high: number];
}

/** The fitted values of the planner. */
export interface PlannerConstants {
  time: Constants;
  memory: MemoryConstants;
}

/** The constants for which docs/planner.md reports errors. */
export const PLANNER_CONSTANTS: PlannerConstants = { time: CONSTANTS, memory: MEMORY_CONSTANTS };

/** CUDA context of one process, and NCCL's buffers per kind of communication group; both are outside the allocator. */
const CONTEXT_GIB = 0.6;
const NCCL_GIB_PER_GROUP = 0.6;
/** Above this share of the available memory the allocator has to retry, and the step becomes slower. */
const TIGHT_SHARE = 0.93;

/** Memory, step time and utilisation of one layout; a string explains why it cannot run. */
export function planLayout(l: LayoutInput, k: PlannerConstants = PLANNER_CONSTANTS): LayoutPlan | string {
  const problem = layoutProblem(l);
  if (problem) return problem;
  const gpu = gpuOf(l.accelerator, k.time);
  if (!gpu) return `${l.accelerator.model} has no known matrix throughput`;
  const available = availableGiB(l, gpu);
  const wanted = memoryOf(l, k.memory);
  const memoryGiB = withinReach(wanted, available);
  const step = stepSeconds(l, gpu, k.time);
  const tokensPerSecondPerGpu = tokensPerStep(l) / step.total / worldSizeOf(l);
  const flops = tokensPerSecondPerGpu * modelFlopsPerToken(l.model, l.sequence);
  return {
    fits: memoryVerdict(wanted, available),
    memoryGiB,
    availableGiB: available,
    step,
    microBatches: microBatchesOf(l),
    tokensPerSecondPerGpu,
    modelTflopsPerGpu: flops / 1e12,
    hardwareTflopsPerGpu: (flops / 1e12) * hardwareShare(l),
    mfu: flops / gpu.peakFlops,
    interval80: interval80(tokensPerSecondPerGpu, l, step),
  };
}

/** Weights, gradients and optimizer: memory that follows from arithmetic alone. */
export const stateGiB = (memory: Pick<MemoryGiB, 'parameters' | 'gradients' | 'optimizer'>) =>
  memory.parameters + memory.gradients + memory.optimizer;

/** Memory that the allocator of one rank may reserve. */
export const availableGiB = (l: LayoutInput, gpu: Gpu) =>
  gpu.memoryGiB - CONTEXT_GIB - NCCL_GIB_PER_GROUP * groupKinds(l);

/** The minimum that the allocator must hold: live tensors, including the holes between kept activations. */
export const leastGiB = (memory: MemoryGiB) => memory.total - memory.fragmentation;

/** Near the limit the allocator releases unused memory, so that it never reserves more than is available. */
export function withinReach(memory: MemoryGiB, available: number): MemoryGiB {
  if (memory.total <= available || leastGiB(memory) > available) return memory;
  return { ...memory, fragmentation: memory.fragmentation - (memory.total - available), total: available };
}

/** Number of kinds of communication group that a rank belongs to. */
const groupKinds = (l: LayoutInput) =>
  [l.tensor, l.pipeline, l.context, l.shard * l.replicate].reduce((kinds, size) => kinds + (size > 1 ? 1 : 0), 0);

/**
 * The allocator releases what it can before it fails, which makes a layout tight. `memory` must be the result of memoryOf, before
 * withinReach.
 */
export function memoryVerdict(memory: MemoryGiB, available: number): Fits {
  if (leastGiB(memory) > available) return 'oom';
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
