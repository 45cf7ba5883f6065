import type { AttentionKernel, Kernels, LayoutInput, PlanPrecision, Stack } from '../lib/core/planner/layout';
import { SMP_V2, STACKS, type StackTraits } from '../lib/core/planner/run/software';
import { hasLossOfTransformerEngine } from './planner-mixture-rows';
import type { Row } from './planner-rows';

type Software = Pick<
  LayoutInput,
  | 'stack'
  | 'kernels'
  | 'attention'
  | 'loss'
  | 'overlapsTensor'
  | 'autocast'
  | 'gathersLogits'
  | 'gathersInputsAgain'
  | 'gradientBytes'
  | 'prefetchesShards'
  | 'collectives'
  | 'optimizerBytes'
  | 'optimizerInBackward'
>;

/** Library and kernels from the strategy's name; what was current for the hardware where it is silent. */
export function softwareOf(row: Row, precision: PlanPrecision): Software {
  const s = row.parallel.strategy ?? '';
  const llama = row.model.mlp_matrices === 3;
  const stack = stackOf(s, row);
  const traits = /smp_v2/.test(s) ? SMP_V2 : STACKS[stack];
  const kernels = kernelsOf(s, traits);
  const attention = attentionOf(row, stack, traits, llama);
  // Llama models in Megatron's style under ZeRO-1: code of the labs' own, with plain heads.
  const ownCode = stack === 'megatron-legacy' && llama && s.includes('kernel=');
  return {
    stack,
    kernels,
    attention,
    loss: lossOf(row, kernels, attention),
    overlapsTensor: traits.overlapsTensor || /asynctp/.test(s),
    autocast:
      attention === 'flash1' && stack === 'fsdp' && llama && !(row.parallel.offload ?? 'none').includes('params'),
    gathersLogits: ownCode,
    gathersInputsAgain: traits.gathersInputsAgain && !ownCode,
    gradientBytes: gradientBytesOf(stack, traits, precision, llama),
    // SC21's ZeRO-3 is DeepSpeed's of April 2021.
    prefetchesShards: !/fairscale|1\.11/.test(s) && !/SC21/.test(row.source ?? ''),
    collectives: row.collectives === 'smddp' ? 'smddp' : 'nccl',
    optimizerBytes: optimizerBytesOf(s, stack, traits, precision, llama),
    optimizerInBackward: /optinbwd|adam8/.test(s),
  };
}

/**
 * torchtitan compiles its loss since 2025, when H200 and later came into use; MPT uses FlashAttention's kernel; torchtune's techniques are
 * added one to the other, the chunked loss after compilation and before checkpointing.
 */
function lossOf(row: Row, kernels: Kernels, attention: AttentionKernel): LayoutInput['loss'] {
  const s = row.parallel.strategy ?? '';
  if (/liger/.test(s)) return 'fused';
  if (hasLossOfTransformerEngine(row)) return 'in-place';
  if (/transformer-engine/.test(s)) return '16-bit';
  if (/chunk|kernel=ac$|optinbwd|adam8/.test(s)) return 'chunked';
  const compiled = kernels === 'compiled' && /H200|B200|B300/.test(row.hardware.gpu);
  const ofMpt = attention === 'flash1' && row.model.mlp_matrices === 2 && /fsdp/.test(s);
  return compiled || ofMpt ? '16-bit' : 'plain';
}

/** BLOOM's optimizer kept bf16 and fp32 gradients; newer code keeps 16 bit only. */
const gradientBytesOf = (stack: Stack, traits: StackTraits, precision: PlanPrecision, llama: boolean) =>
  stack === 'megatron-legacy' && precision === 'bf16' && !llama ? 6 : traits.gradientBytes;

/**
 * 8-bit moments, but those of the embeddings stay in fp32, as bitsandbytes does: 5.5 of 8 bytes in a 3B model. DeepSpeed of BLOOM's time
 * held an fp32 gradient beside the moments, and in fp16 the flat 16-bit copy it was cast from.
 */
function optimizerBytesOf(
  s: string,
  stack: Stack,
  traits: StackTraits,
  precision: PlanPrecision,
  llama: boolean,
): number {
  if (/adam8/.test(s)) return 5.5;
  if (stack !== 'megatron-legacy' || llama) return traits.optimizerBytes;
  return precision === 'fp16' ? 14 : 12;
}

function stackOf(s: string, row: Row): Stack {
  if (/jax|maxtext/.test(s)) return 'jax';
  // Megatron's own FSDP runs Megatron's kernels.
  if (/megatron_fsdp/.test(s)) return 'megatron';
  if (/^zero|deepspeed_zero/.test(s)) return 'deepspeed';
  if (/smp_v1/.test(s)) return 'smp-v1';
  if (/fsdp|hsdp|single|ddp|smp_v|mics/.test(s)) return 'fsdp';
  if (/core|distopt|bridge/.test(s)) return 'megatron';
  if (/^3d_zero|^tp_/.test(s) && /H100|H200|B200|B300/.test(row.hardware.gpu)) return 'nanotron';
  if (/megatron|^3d/.test(s)) return 'megatron-legacy';
  return 'fsdp';
}

function kernelsOf(s: string, traits: StackTraits): Kernels {
  if (/compile/.test(s) || /adam8|optinbwd|kernel=ac$/.test(s)) return 'compiled';
  return /RMS kernel|liger|transformer-engine/.test(s) ? 'fused' : traits.kernels;
}

function attentionOf(row: Row, stack: Stack, traits: StackTraits, llama: boolean): AttentionKernel {
  const s = row.parallel.strategy ?? '';
  if (/flash_attentionv1/.test(s)) return 'flash1';
  if (/flash/.test(s)) return 'flash';
  // FSDP1 without further words is of the time before FlashAttention-2.
  if (/^fsdp_(full_shard|shard_grad_op)$/.test(s)) return 'flash1';
  if (/kernel=torch/.test(s)) return 'unfused';
  if (/kernel=fused/.test(s)) return 'fused';
  // Megatron-style code for Llama models is younger than FlashAttention; for GPT and BLOOM it is older, and so it is under ZeRO-3.
  if (stack === 'megatron-legacy' && llama) return 'flash';
  if (stack === 'deepspeed' && row.model.mlp_matrices === 2) return 'fused';
  return /1\.11/.test(s) ? 'fused' : traits.attention;
}
