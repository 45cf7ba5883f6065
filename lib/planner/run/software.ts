import type { LayoutInput, Stack } from '../layout';

/** What a software stack brings by itself, whatever the layout: the planner of run files and the scoring of published rows read it here. */
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

/** The stack's own defaults; a run's options, or what a published row says of itself, go before them. */
export const STACKS: Readonly<Record<Stack, StackTraits>> = {
  // PyTorch's sequence parallelism keeps the gathered inputs of its products.
  fsdp: { ...PLAIN, gathersInputsAgain: false },
  deepspeed: PLAIN,
  // Transformer Engine's layers, with tensor-parallel communication behind the products.
  megatron: { ...PLAIN, kernels: 'fused', overlapsTensor: true },
  // Megatron-DeepSpeed and labs' code of its time: a fused softmax over the score matrix.
  'megatron-legacy': { ...PLAIN, attention: 'fused' },
  nanotron: PLAIN,
  jax: { ...PLAIN, kernels: 'fused' },
  // No published row of SMP v1 names its attention kernel; since 1.13 it has FlashAttention.
  'smp-v1': PLAIN,
};

/** SMP v2 is FSDP with Transformer Engine's layers, which gather the inputs of their products again. */
export const SMP_V2: StackTraits = { ...STACKS.fsdp, kernels: 'fused', gathersInputsAgain: true };
