import type { RunSpec } from '../../config/run-spec';
import { compareVersions, pytorchOfImage } from '../../distribution/image-version';
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

/** Attention stays within the documents of a row. */
export const masksDocuments = ({ training }: RunSpec): boolean =>
  training.objective === 'sft' || training.documentMask === true;

/** Capped scores and sinks, which FlexAttention of PyTorch 2.11 and later computes in one kernel. */
export const changesScores = ({ model }: RunSpec): boolean =>
  model?.architecture.logitSoftcap?.attention !== undefined || model?.architecture.attentionSinks === true;

/** The earliest PyTorch whose FlexAttention the built-in trainer uses (flex.py). */
export const FLEX_SINCE = '2.11';

/** The built-in trainer computes capped scores with plain operations if the image's PyTorch is known to be older. */
export function keepsScores(run: RunSpec): boolean {
  const version = pytorchOfImage(run);
  const isOlder = version !== undefined && compareVersions(version, FLEX_SINCE) < 0;
  return isOlder && run.code.builtin === 'builtin' && run.model?.architecture.logitSoftcap?.attention !== undefined;
}
