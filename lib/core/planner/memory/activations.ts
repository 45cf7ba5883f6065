import { hasAttention } from '../../catalog/model/parameters';
import type { MemoryConstants } from '../constants';
import { blocksAtOnce, elementBytesOf, type LayoutInput, microBatchesOf } from '../layout';
import { activeFfn, expertHiddenOf, kindsOf, meanHeadSize, mixedElements } from '../model-size';
import { hasPlainRmsNorm, tokensPerRank } from '../time/compute';

/**
 * Bytes of activations on one GPU at the start of a micro-batch's backward pass: of all micro-batches in flight, including the holes between
 * them (`kept`), what the block being processed needs in addition (`oneBlock`), all that a block needs, whatever is recomputed, and the score
 * matrix of that block with the masks that all blocks share.
 */
export type HeldActivations = Record<'kept' | 'oneBlock' | 'wholeBlock' | 'scores', number>;

/** Activations kept for `layers` blocks, and what the block being processed needs in addition when it is recomputed. */
export function heldActivations(l: LayoutInput, k: MemoryConstants, layers: number, isFirst: boolean): HeldActivations {
  const tokens = tokensPerRank(l);
  const input = ((l.autocast ? 4 : elementBytesOf(l)) * l.model.hidden * (l.model.streams ?? 1)) / normRanks(l);
  const kinds = kindsOf(l).map(({ share, layout }) => ({ share, ...heldByBlock(layout, k, input) }));
  const kept = kinds.reduce((sum, kind) => sum + kind.share * kind.kept, 0);
  const inFlight = isFirst ? Math.min(microBatchesOf(l), l.pipeline) : 1;
  // Each micro-batch in flight also keeps the stage's input (received or embedded) and its output.
  const stageEnds = 2 * tokens * input;
  const interleave = l.virtualStages > 1 && isFirst ? 1 + (l.pipeline - 1) / (l.pipeline * l.virtualStages) : 1;
  return {
    kept: (kept * layers * interleave + stageEnds) * inFlight * (1 + k.keptHoles),
    oneBlock: Math.max(0, ...kinds.map(({ inWork }) => inWork)),
    wholeBlock: Math.max(...kinds.map(({ whole }) => whole)),
    scores: tokens * Math.max(...kinds.map(({ scores }) => scores)),
  };
}

/**
 * For one block of this kind: the kept activations, what it and those recomputed with it need in addition, and the scores of a token.
 */
function heldByBlock(l: LayoutInput, k: MemoryConstants, input: number) {
  const tokens = tokensPerRank(l);
  const block = blockBytesPerToken(l, k);
  const own = tokens * keptPerToken(l, block, input);
  const scores = l.recompute === 'none' ? 0 : block.core;
  const whole = tokens * blocksAtOnce(l) * block.all;
  return { kept: own / blocksAtOnce(l), scores, inWork: whole - tokens * scores - own, whole };
}

/**
 * Bytes per token of one block: all activations without recomputation, the score matrix alone (`core`), what per-operation checkpointing of
 * PyTorch keeps (`op`), and input and results of matrix products and attention.
 */
type BlockBytes = Record<'all' | 'core' | 'op' | 'products', number>;

function blockBytesPerToken(l: LayoutInput, k: MemoryConstants): BlockBytes {
  const m = l.model;
  const width = hasAttention(m) ? m.heads * meanHeadSize(m) : 0;
  const whole =
    ((8 + 4 * ((m.streams ?? 1) - 1)) * m.hidden) / normRanks(l) +
    gatheredBytes(l) +
    (isOldMegatron(l) ? (2 * m.hidden) / normRanks(l) : 0);
  const heads = (2 * (mixedElements(m) + gatheredKeys(l))) / l.tensor;
  const wide = (mlpBytes(l) * activeFfn(m)) / l.tensor;
  const core = hasAttention(m) ? (SCORE_BYTES[l.attention] * m.heads * l.sequence) / l.tensor : 0;
  const plain = (elementBytesOf(l) / 2) * (whole + heads + wide) * activationScale(l, k);
  const all = plain + plainNormBytes(l, k) + wideResidualBytes(l) + core;
  // Every second matrix product: query, value, gate or up, down; and the output of attention.
  const mixed = m.recurrence ? m.recurrence.kept / 2 : width + m.kvHeads * meanHeadSize(m);
  const products = mixed + activeFfn(m);
  const op = elementBytesOf(l) * k.keptByOp * ((products + width) / l.tensor + (2 * m.hidden) / normRanks(l));
  return { all, core, op: Math.min(op, all - core), products: Math.min(productBytes(l), all - core) + adapterBytes(l) };
}

/**
 * What the built-in trainer's selective checkpointing keeps of a block (a test counts it on the trainer). Partial sums of tensor-parallel
 * products and the scattered sums are both kept. A compiler drops the last product, which no backward pass reads.
 */
function productBytes(l: LayoutInput): number {
  const m = l.model;
  const split = mixedElements(m) + (m.mlpMatrices - 1) * activeFfn(m);
  const last = l.kernels === 'compiled' ? 0 : expertHiddenOf(m) * m.expertsPerToken;
  const scattered = (l.tensor > 1 ? 3 : 1) * (m.hidden / normRanks(l));
  return elementBytesOf(l) * (split / l.tensor + m.hidden + last + scattered);
}

/** Products of adapters, which it keeps as well; tensor parallelism does not split them. */
const adapterBytes = (l: LayoutInput): number => elementBytesOf(l) * (l.adaptedOutputs ?? 0);

/** Bytes per score: fused softmax keeps scores, probabilities and dropout mask; plain operations also keep fp32 copies. */
const SCORE_BYTES: Readonly<Record<LayoutInput['attention'], number>> = { flash: 0, flash1: 0, fused: 5, unfused: 10 };

/** Megatron before 2023 keeps dropout masks of its residual stream. */
const isOldMegatron = (l: LayoutInput) => l.stack === 'megatron-legacy';

/** Number of ranks among which norms and residuals are divided. */
const normRanks = (l: LayoutInput) => (l.sequenceParallel ? l.tensor : 1);

/** Inputs of attention and feed-forward, gathered over the tensor ranks, if a library keeps them instead of gathering them again. */
const gatheredBytes = (l: LayoutInput) =>
  l.sequenceParallel && l.tensor > 1 && !l.gathersInputsAgain ? 4 * l.model.hidden * (1 - 1 / l.tensor) : 0;

/** Keys and values of the whole sequence per local token, which the built-in trainer's context parallelism gathers. */
const gatheredKeys = (l: LayoutInput) =>
  l.isOwnTrainer && l.context > 1 && hasAttention(l.model)
    ? 2 * l.context * l.model.kvHeads * meanHeadSize(l.model)
    : 0;

/** Gate, up, their activation and their product; a fused kernel keeps only its inputs and recomputes the rest. */
const mlpBytes = (l: LayoutInput) =>
  l.model.mlpMatrices === 3 ? (l.kernels === 'eager' || isOldMegatron(l) ? 8 : 6) : 4;

function activationScale(l: LayoutInput, k: MemoryConstants): number {
  if (isOldMegatron(l)) return k.activationLegacy;
  if (l.kernels === 'compiled') return k.activationCompiled;
  if (l.kernels === 'fused') return k.activationFused;
  return l.model.mlpMatrices === 3 ? k.activationEager : k.activationPlainMlp;
}

/** Plain RMSNorms keep fp32 copies of their input, and in 16 bit their result. */
function plainNormBytes(l: LayoutInput, k: MemoryConstants): number {
  if (!hasPlainRmsNorm(l)) return 0;
  const bytes = l.precision === 'fp32' ? (2 / 3) * k.plainNormBytes : k.plainNormBytes;
  return (bytes * l.model.hidden) / normRanks(l);
}

/** Fused norms of that generation keep the residual stream in 32 bit, once for each norm. */
const wideResidualBytes = (l: LayoutInput) =>
  isOldMegatron(l) && l.kernels === 'fused' ? (2 * l.model.hidden) / normRanks(l) : 0;

function keptPerToken(l: LayoutInput, block: BlockBytes, input: number): number {
  const stored = l.offloadActivations ? 0 : input;
  const beyondInput = input - stored;
  return {
    none: block.all,
    full: stored,
    block: (stored + block.all) / 2,
    op: Math.max(stored, block.op - beyondInput),
    products: Math.max(stored, block.products - beyondInput),
    core: block.all - block.core,
  }[l.recompute];
}
