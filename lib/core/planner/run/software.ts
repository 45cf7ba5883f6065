import type { LayoutInput, Stack } from '../layout';

/**
 * Properties of a software stack that do not depend on the layout; used by the planner for run files and by the scoring of published rows.
 */
export type StackTraits = Pick<
  LayoutInput,
  'kernels' | 'attention' | 'overlapsTensor' | 'gathersInputsAgain' | 'gradientBytes' | 'optimizerBytes'
>;

const PLAIN: StackTraits = {
  kernels: 'eager',
  attention: 'flash',
  overlapsTensor: false,
  gathersInputsAgain: true,
  gradientBytes: 2,
  optimizerBytes: 8,
};

/** Defaults of each stack; options of a run or of a published row take precedence. */
export const STACKS: Readonly<Record<Stack, StackTraits>> = {
  // PyTorch's sequence parallelism keeps the gathered inputs of its products.
  fsdp: { ...PLAIN, gathersInputsAgain: false },
  deepspeed: PLAIN,
  // Transformer Engine's layers, with tensor-parallel communication hidden behind the products.
  megatron: { ...PLAIN, kernels: 'fused', overlapsTensor: true },
  // Megatron-DeepSpeed and in-house code of its generation: fused softmax over the score matrix.
  'megatron-legacy': { ...PLAIN, attention: 'fused' },
  nanotron: PLAIN,
  jax: { ...PLAIN, kernels: 'fused' },
  // No published row of SMP v1 names its attention kernel; since 1.13 it has FlashAttention.
  'smp-v1': PLAIN,
};

/** SMP v2 is FSDP with Transformer Engine's layers, which gather the inputs of their products again. */
export const SMP_V2: StackTraits = { ...STACKS.fsdp, kernels: 'fused', gathersInputsAgain: true };
