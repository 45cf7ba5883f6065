import { domainGpusOf, type LayoutInput } from './layout';
import { lowPrecisionOf } from './time/compute';
import type { StepSeconds } from './time/step-time';

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
export function interval80(tokensPerSecond: number, l: LayoutInput, step: StepSeconds): [low: number, high: number] {
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
