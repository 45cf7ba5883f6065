import { embeddingParameters } from '../catalog/models';
import { tokensPerRank } from './compute';
import type { LayoutInput } from './layout';
import { heldActivations } from './memory-activations';
import type { MemoryConstants } from './memory-constants';
import { heldState } from './memory-state';
import { blockParametersPerExpertRank } from './model-size';
import { stageLayers } from './stages';

const GIB = 2 ** 30;

/** GiB by component on the fullest GPU; `total` is what the allocator has reserved, CUDA context and NCCL's own buffers not counted. */
export interface MemoryGiB {
  parameters: number;
  gradients: number;
  optimizer: number;
  activations: number;
  logits: number;
  /** Gathered parameters and whole gradients of the blocks in work. */
  working: number;
  /** Buffers of communication and workspaces. */
  buffers: number;
  /** What the allocator holds beyond what lives. */
  fragmentation: number;
  total: number;
}

/** Memory of one layout. The first and the last pipeline stage are reckoned both; the fuller one counts. */
export function memoryOf(l: LayoutInput, k: MemoryConstants): MemoryGiB {
  const first = stageMemory(l, k, true);
  if (l.pipeline === 1) return first;
  const last = stageMemory(l, k, false);
  return last.total > first.total ? last : first;
}

function stageMemory(l: LayoutInput, k: MemoryConstants, isFirst: boolean): MemoryGiB {
  const layers = isFirst ? stageLayers(l).most : stageLayers(l).last;
  const state = heldState(l, k, layers);
  const { kept, oneBlock, scores } = heldActivations(l, k, layers, isFirst);
  const logits = isFirst && l.pipeline > 1 ? 0 : logitBytes(l, k);
  return reserved(k, {
    parameters: state.parameters,
    gradients: state.gradients,
    optimizer: state.optimizer,
    // The peak is the start of the backward pass: all that is kept, and the logits or the first recomputed block on top.
    activations: kept + scores + Math.max(0, oneBlock - logits),
    logits,
    working: Math.min(workingBytes(l, k), state.unsharded),
    buffers: bufferBytes(l, k),
  });
}

/** Workspaces, one whole residual stream in fp32, and DeepSpeed's buckets. */
const bufferBytes = (l: LayoutInput, k: MemoryConstants) =>
  (k.bufferGiB + (l.stack === 'deepspeed' ? k.deepspeedBufferGiB : 0)) * GIB + 4 * tokensPerRank(l) * l.model.hidden;

/**
 * Bytes a logit of a loss in plain operations: logits in 16 bit, in fp32, shifted by one, their log-softmax, its gradient and that of the
 * unshifted logits in fp32; Hugging Face's models also hand their fp32 logits out.
 */
const PLAIN_LOSS_BYTES = 22;
const HANDED_OUT_BYTES = 4;

/** Bytes a logit of losses that keep no fp32 copy: logits and their gradient in 16 bit, logits alone, nothing. */
const LEAN_LOSS_BYTES = { '16-bit': 4, chunked: 2, fused: 0 };

/** Logits in 16 bit, their fp32 copy and the gradients of both, as far as the loss keeps them. */
function logitBytes(l: LayoutInput, k: MemoryConstants): number {
  // Where the head gathers its logits, no rank holds only a share.
  const logits = (tokensPerRank(l) * l.model.vocabulary) / (l.gathersLogits ? 1 : l.tensor);
  if (l.loss !== 'plain') return LEAN_LOSS_BYTES[l.loss] * logits;
  if (l.gathersLogits) return PLAIN_LOSS_BYTES * logits;
  if (l.autocast) return (PLAIN_LOSS_BYTES + HANDED_OUT_BYTES) * logits;
  return (l.stack === 'fsdp' ? k.logitBytesTorch : k.logitBytes) * logits;
}

/**
 * ZeRO-3 and FSDP: the block in work with its gradient, and the next one when it is fetched ahead. FSDP's root group keeps the embedding
 * and the head gathered, and the head's gradient, until the backward pass is over; DeepSpeed gathers one of them at a time and collects
 * gradients in its buckets.
 */
function workingBytes(l: LayoutInput, k: MemoryConstants): number {
  if (l.zeroStage !== 3 || l.shard * l.context === 1) return 0;
  const wholeGroups = (l.stack === 'fsdp' || l.stack === 'jax') && l.prefetchesShards;
  const block = blockParametersPerExpertRank(l.model, l.expert) * (wholeGroups ? k.workingBytesPerParameter : 4);
  const tables = l.stack === 'fsdp' && !l.model.tiedEmbeddings ? 6 : 4;
  return (block + tables * embeddingParameters(l.model)) / l.tensor;
}

/** What lives, and what the allocator holds beyond it: little of what keeps its size from step to step, more of what comes and goes. */
function reserved(k: MemoryConstants, bytes: Omit<MemoryGiB, 'fragmentation' | 'total'>): MemoryGiB {
  const steady = bytes.parameters + bytes.gradients + bytes.optimizer + bytes.working;
  const passing = bytes.activations + bytes.logits + bytes.buffers;
  const waste = steady * k.stateWaste + passing * k.fragmentation;
  return {
    parameters: bytes.parameters / GIB,
    gradients: bytes.gradients / GIB,
    optimizer: bytes.optimizer / GIB,
    activations: bytes.activations / GIB,
    logits: bytes.logits / GIB,
    working: bytes.working / GIB,
    buffers: bytes.buffers / GIB,
    fragmentation: waste / GIB,
    total: (steady + passing + waste) / GIB,
  };
}
