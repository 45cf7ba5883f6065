import { hasPlainRmsNorm, tokensPerRank } from './compute';
import { type LayoutInput, microBatchesOf } from './layout';
import type { MemoryConstants } from './memory-constants';
import { blockParametersPerExpertRank, embeddingParameters, layerParameters } from './model-size';

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

/** Bytes per parameter and over how many ranks each kind of state is divided. */
interface StateBytes {
  parameters: number;
  gradients: number;
  optimizer: number;
}

/** Memory of one layout. The first and the last pipeline stage are reckoned both; the fuller one counts. */
export function memoryOf(l: LayoutInput, k: MemoryConstants): MemoryGiB {
  const first = stageMemory(l, k, true);
  if (l.pipeline === 1) return first;
  const last = stageMemory(l, k, false);
  return last.total > first.total ? last : first;
}

function stageMemory(l: LayoutInput, k: MemoryConstants, isFirst: boolean): MemoryGiB {
  const m = l.model;
  const layers = stageLayers(l, isFirst);
  const tables = l.pipeline > 1 ? 1 : m.tiedEmbeddings ? 1 : 2;
  const local = (layers * layerParameters(m) + tables * embeddingParameters(m)) / l.tensor;
  const state = stateBytes(l, k);
  const ranks = l.shard * l.context;
  const zero = l.zeroStage;
  const parameters = l.offloadParameters && zero >= 3 ? 0 : (state.parameters * local) / (zero >= 3 ? ranks : 1);
  const gradients = (state.gradients * local) / (zero >= 2 ? ranks : 1);
  const optimizer = l.offloadOptimizer ? 0 : (state.optimizer * local) / (zero >= 1 ? ranks : 1);
  const held = heldActivations(l, k, layers, isFirst);
  const logits = isFirst && l.pipeline > 1 ? 0 : logitBytes(l, k);
  const working = Math.min(workingBytes(l, k, ranks), state.parameters * local * (1 - 1 / ranks));
  const buffers =
    k.bufferGiB * GIB + 4 * tokensPerRank(l) * m.hidden + (l.stack === 'deepspeed' ? k.deepspeedBufferGiB * GIB : 0);
  return peak(k, { parameters, gradients, optimizer, activations: held.all, logits, working, buffers }, held.oneBlock);
}

/** Blocks of the fullest inner stage, or of the last one. */
function stageLayers(l: LayoutInput, isFirst: boolean): number {
  const most = Math.ceil(l.model.layers / l.pipeline);
  return isFirst ? most : Math.max(1, l.model.layers - most * (l.pipeline - 1));
}

/** Parameters, gradients and optimizer state by precision and library. */
function stateBytes(l: LayoutInput, k: MemoryConstants): StateBytes {
  const o = l.optimizerBytes;
  if (l.precision === 'bf16-pure') return { parameters: 2, gradients: l.optimizerInBackward ? 0 : 2, optimizer: o / 2 };
  if (l.precision === 'fp32') return { parameters: 4, gradients: 4, optimizer: o };
  if (l.stack === 'fsdp' || l.stack === 'jax') {
    return l.zeroStage >= 3
      ? { parameters: 4, gradients: 4, optimizer: o }
      : { parameters: 4, gradients: 4, optimizer: o };
  }
  if (l.stack === 'deepspeed')
    return { parameters: 2, gradients: l.precision === 'fp16' ? 2 : k.deepspeedBf16GradientBytes, optimizer: 4 + o };
  if (l.stack === 'megatron') return { parameters: 2, gradients: l.gradientBytes, optimizer: 4 + o };
  if (l.stack === 'nanotron') return { parameters: 2, gradients: 6, optimizer: 4 + o };
  // Megatron-DeepSpeed: an fp32 gradient stays beside each optimizer state.
  return { parameters: 2, gradients: l.gradientBytes, optimizer: 8 + o };
}

/** Of one token in one block: everything, the part no product makes, and the score matrix alone. */
interface BlockBytes {
  all: number;
  cheap: number;
  core: number;
}

/** Bytes one token leaves behind in one block when nothing is recomputed; `core` is the share of the score matrix. */
function blockBytesPerToken(l: LayoutInput, k: MemoryConstants): BlockBytes {
  const m = l.model;
  const whole = ((8 + (l.stack === 'megatron-legacy' ? 2 : 0)) * m.hidden) / normRanks(l);
  const heads = (4 * (m.heads + m.kvHeads) * m.headSize) / l.tensor;
  const wide = (mlpBytes(l) * m.ffn * m.expertsPerToken) / l.tensor;
  const core =
    l.attention === 'flash' || l.attention === 'flash1'
      ? 0
      : ((l.attention === 'unfused' ? 9 : 5) * m.heads * l.sequence) / l.tensor;
  const norms = plainNormBytes(l, k);
  return { all: (whole + heads + wide) * activationScale(l, k) + norms + core, cheap: norms + core, core };
}

/** Ranks over which norms and residuals are divided. */
const normRanks = (l: LayoutInput) => (l.sequenceParallel ? l.tensor : 1);

/** Gate, up, their activation and product; a fused kernel keeps only its inputs and recomputes the rest. */
const mlpBytes = (l: LayoutInput) =>
  l.model.mlpMatrices === 3 ? (l.kernels === 'eager' || l.stack === 'megatron-legacy' ? 8 : 6) : 4;

function activationScale(l: LayoutInput, k: MemoryConstants): number {
  if (l.kernels === 'compiled') return k.activationCompiled;
  if (l.kernels === 'fused') return k.activationFused;
  if (l.stack === 'megatron-legacy') return k.activationLegacy;
  return l.model.mlpMatrices === 3 ? k.activationEager : k.activationPlainMlp;
}

/** Plain RMSNorms and rotary embeddings keep their fp32 copies. */
function plainNormBytes(l: LayoutInput, k: MemoryConstants): number {
  if (!hasPlainRmsNorm(l)) return 0;
  return (k.plainNormBytes * l.model.hidden) / normRanks(l);
}

/** What is kept of each block, and what the block in work needs beside it when it is recomputed. */
function heldActivations(
  l: LayoutInput,
  k: MemoryConstants,
  layers: number,
  isFirst: boolean,
): { all: number; oneBlock: number } {
  const tokens = tokensPerRank(l);
  const block = blockBytesPerToken(l, k);
  const input = ((l.autocast ? 4 : 2) * l.model.hidden) / normRanks(l);
  const oneBlock = tokens * block.all;
  const perBlock = tokens * keptPerToken(l, k, block, input);
  const inFlight = isFirst ? Math.min(microBatchesOf(l), l.pipeline) : 1;
  // Each micro-batch in flight also keeps what the stage received (or embedded) and what it hands on.
  const stageEnds = 2 * tokens * input;
  const interleave = l.virtualStages > 1 && isFirst ? 1 + (l.pipeline - 1) / (l.pipeline * l.virtualStages) : 1;
  return {
    all: (perBlock * layers * interleave + stageEnds) * inFlight,
    oneBlock: Math.max(0, oneBlock - perBlock),
  };
}

function keptPerToken(l: LayoutInput, k: MemoryConstants, block: BlockBytes, input: number): number {
  const stored = l.offloadActivations ? 0 : input;
  switch (l.recompute) {
    case 'full':
      return stored;
    case 'block':
      return (stored + block.all) / 2;
    case 'op':
      return stored + Math.max(0, block.all - block.cheap - stored) * k.keptByOp;
    case 'core':
      return block.all - block.core;
    default:
      return block.all;
  }
}

/**
 * A loss in plain operations: logits in 16 bit, in fp32, shifted by one, their log-softmax and its gradient, and that in 16 bit: about
 * 21 bytes a logit where others need 9.5.
 */
const PLAIN_HEAD = 2.2;

/** Logits in 16 bit, their fp32 copy and the gradients of both; a fused loss keeps none. */
function logitBytes(l: LayoutInput, k: MemoryConstants): number {
  if (l.fusedLoss) return 0;
  const perLogit = l.kernels === 'compiled' ? k.logitBytesCompiled : k.logitBytes;
  // Where the head gathers its logits, no rank holds only a share.
  const plain = l.autocast || l.gathersLogits ? PLAIN_HEAD : 1;
  return (plain * perLogit * tokensPerRank(l) * l.model.vocabulary) / (l.gathersLogits ? 1 : l.tensor);
}

/** ZeRO-3 and FSDP: the block in work and the one fetched ahead, and the whole gradient of one block. */
function workingBytes(l: LayoutInput, k: MemoryConstants, ranks: number): number {
  if (l.zeroStage !== 3 || ranks === 1) return 0;
  const unit = Math.max(blockParametersPerExpertRank(l.model, l.expert), embeddingParameters(l.model)) / l.tensor;
  return unit * k.workingBytesPerParameter * (l.autocast ? 2 : 1);
}

type Parts = Omit<MemoryGiB, 'fragmentation' | 'total'>;

/** The peak is the start of the backward pass: all that is kept, and the logits or the first recomputed block on top. */
function peak(k: MemoryConstants, bytes: Parts, oneBlock: number): MemoryGiB {
  const activations = bytes.activations + Math.max(0, oneBlock - bytes.logits);
  const live =
    bytes.parameters + bytes.gradients + bytes.optimizer + bytes.working + bytes.buffers + bytes.logits + activations;
  return {
    parameters: bytes.parameters / GIB,
    gradients: bytes.gradients / GIB,
    optimizer: bytes.optimizer / GIB,
    activations: activations / GIB,
    logits: bytes.logits / GIB,
    working: bytes.working / GIB,
    buffers: bytes.buffers / GIB,
    fragmentation: (live * k.fragmentation) / GIB,
    total: (live * (1 + k.fragmentation)) / GIB,
  };
}
