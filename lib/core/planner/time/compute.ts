import { attentionParameters } from '../../catalog/model/parameters';
import type { Constants } from '../constants';
import type { Gpu } from '../gpu';
import {
  elementBytesOf,
  expertTensorOf,
  type LayoutInput,
  type PlanPrecision,
  quantizedOfBlock,
  sequencesPerSample,
  storedBytes,
  takesMask,
} from '../layout';
import {
  activeFfn,
  activeFfnWeights,
  expertHiddenOf,
  headsOf,
  keysInFull,
  meanHeadSize,
  mixedElements,
} from '../model-size';

/** Cost of matrix products in 8 and 4 bit relative to tensorwise float8, for which measurements exist. */
interface LowPrecision {
  /** Relative rate of the products. */
  rate: number;
  /** Relative number of bytes that are moved by casting the operands. */
  cast: number;
  /** Bytes per element, averaged over a 16-bit result and its two operands. */
  bytes: number;
  /** Additional width of the 80 % interval, in ln(tokens per second), because no published run with this precision has been scored. */
  unsure: number;
}

/**
 * Casting in blocks of 32 reads 16 bit and writes 8 bit and a scale, once per dimension, at 5.5 and 3.9 TB/s on B200; one scale per tensor
 * reads twice and writes once (https://github.com/pytorch/ao/blob/main/torchao/prototype/mx_formats/README.md, 2026-11-23).
 */
const BLOCK_CAST = (3.03 + (3.03 * 5.5) / 3.9) / 5;

/**
 * Recipes of torchao and Transformer Engine. Scales per row are cast along both dimensions, reading twice each time, and the CUTLASS kernel
 * for them is slower than cuBLAS: for Llama 3 8B on 8 B200, rowwise float8 gains 4.0 %, MXFP8 20.0 % and tensorwise 25.4 % over bf16 (the
 * same page). FP4 products run at twice the rate of 8 bit (https://www.nvidia.com/en-us/data-center/hgx/: 9 and 4.5 dense PFLOPS of a
 * B200), and the cast of NVFP4 adds a Hadamard transform (arXiv:2509.25149). Blocks of 128 (DeepSeek-V3) are cast like those of 32.
 */
const RECIPES: Readonly<Partial<Record<PlanPrecision, LowPrecision>>> = {
  fp8: { rate: 1, cast: 1, bytes: 1.5, unsure: 0 },
  'fp8-rowwise': { rate: 0.75, cast: 2, bytes: 1.5, unsure: 0.1 },
  'fp8-blockwise': { rate: 1, cast: BLOCK_CAST, bytes: 1.5, unsure: 0.15 },
  mxfp8: { rate: 1, cast: BLOCK_CAST, bytes: 1.5, unsure: 0.1 },
  nvfp4: { rate: 2, cast: BLOCK_CAST, bytes: 1.25, unsure: 0.2 },
};

/** The recipe of a layout with products in 8 or 4 bit. */
export const lowPrecisionOf = (l: Pick<LayoutInput, 'precision'>): LowPrecision | undefined => RECIPES[l.precision];

/**
 * Seconds of one block on one GPU for one micro-batch, without communication. `permutationForward`: the part of `trafficForward` in which tokens
 * are copied for their experts, sorted and summed; `launchForward`: minimum time that the host needs to launch the forward kernels.
 */
export type BlockSeconds = Record<
  'gemmForward' | 'attentionForward' | 'attentionBackward' | 'trafficForward' | 'permutationForward' | 'launchForward',
  number
>;

/** Number of kernels in one forward block, and the host's time to launch each. */
const LAUNCHES: Readonly<Record<LayoutInput['kernels'], number>> = { eager: 34, compiled: 14, fused: 20 };
const LAUNCH_SECONDS = 5e-6;

/**
 * Number of kernels that an expert launches in one forward pass where the built-in trainer computes experts one after the other, as it does
 * with matrices in 4 bits: a loop over 128 experts takes 0.29 and 0.50 ms for each, forward and backward, on two H200
 * (docs/evidence/2026-11-23-h200.md, 2026-11-27-h200.md), and each of three products also unpacks its matrix.
 */
const LAUNCHES_OF_EXPERT = 30;

const launches = ({ kernels, quantized, model, expert }: LayoutInput): number =>
  LAUNCHES[kernels] + (quantized && model.experts > 1 ? (LAUNCHES_OF_EXPERT * model.experts) / expert : 0);

/** Matrix products of one block: query-key-value, attention output, up (and gate), down. */
export const GEMMS_PER_BLOCK = 4;

/** Number of tokens of one micro-batch on one GPU. */
export const tokensPerRank = (l: LayoutInput) => (l.microBatch * sequencesPerSample(l) * l.sequence) / l.context;

/** Computing time of one block on one GPU for one micro-batch, by component, seconds. */
export function blockSeconds(l: LayoutInput, gpu: Gpu, k: Constants): BlockSeconds {
  const attention = attentionSeconds(l, gpu, k);
  return {
    gemmForward: gemmSeconds(l, gpu, k) + unpackSeconds(l, gpu),
    attentionForward: attention.forward,
    attentionBackward: attention.backward,
    trafficForward: trafficBytes(l, k) / gpu.memoryBytesPerSecond,
    permutationForward: permutedBytes(l, k) / gpu.memoryBytesPerSecond,
    launchForward: launchSeconds(l, k),
  };
}

function launchSeconds(l: LayoutInput, k: Constants): number {
  if (l.launchesGraphs) return 0;
  return launches(l) * LAUNCH_SECONDS + (isDispatched(l) ? k.expertHostSeconds : 0);
}

/** Megatron-Core routes, orders and sends tokens by many small kernels, which the host launches one by one without CUDA graphs. */
const isDispatched = (l: LayoutInput) => l.stack.startsWith('megatron') && l.model.experts > 1;

const isLegacy = (l: LayoutInput) => l.stack === 'megatron-legacy';

/**
 * Time of unpacking 4-bit matrices relative to reading and writing them once. With LitGPT's LoRA on one A100 (bitsandbytes 0.41;
 * https://github.com/Lightning-AI/litgpt/blob/4839345a97a0/tutorials/resource-tables.md, 2023-10-20), an iteration of Llama 2 takes 79 ms
 * (7B) and 191 ms (13B) longer with nf4: 3.7 and 4.6 times the two passes over their weights.
 */
const UNPACK_PASSES = 4;

/** Every product with a 4-bit matrix, forward and backward, unpacks it to the precision of the computation before. */
function unpackSeconds(l: LayoutInput, gpu: Gpu): number {
  const quantized = quantizedOfBlock(l);
  const bytes = storedBytes(0, quantized, quantized) + elementBytesOf(l) * quantized;
  return (UNPACK_PASSES * bytes) / gpu.memoryBytesPerSecond;
}

/** Additive roofline: arithmetic at the fitted ceiling plus memory traffic of the operands, so that thin shards are slower. */
function gemmSeconds(l: LayoutInput, gpu: Gpu, k: Constants): number {
  const m = l.model;
  const t = l.tensor;
  const tokens = tokensPerRank(l);
  const weights = (attentionParameters(m) + activeFfnWeights(m)) / t;
  const experts = expertProducts(l, k);
  const inner = m.mlpMatrices * activeFfn(m);
  const columns = (mixedElements(m) + inner) / t + 2 * (m.hidden + m.expertsPerToken * expertHiddenOf(m));
  const bytes = lowPrecisionOf(l)?.bytes ?? 2;
  const rate = gemmRate(l, gpu, k) / (1 + k.gemmTokens / tokens);
  return (
    (2 * tokens * (weights + experts.slower)) / rate +
    (bytes * (weights + experts.unvisited + tokens * columns)) / gpu.memoryBytesPerSecond +
    GEMMS_PER_BLOCK * k.gemmTailSeconds
  );
}

/**
 * Cost of the experts of a block: additional weights, in which the longer time of a token's own experts is expressed (each product is small
 * and gets few of the tokens), and weights that are read in addition to those of one token's experts.
 */
function expertProducts(l: LayoutInput, k: Constants): { slower: number; unvisited: number } {
  const m = l.model;
  if (m.experts <= 1) return { slower: 0, unvisited: 0 };
  const one = (m.mlpMatrices * m.ffn * expertHiddenOf(m)) / l.tensor;
  // The ranks of a tensor-parallel group divide their tokens among them; an expert may be split over fewer ranks, and then gets tokens of
  // fewer groups.
  const split = expertTensorOf(l);
  const share = split / l.tensor;
  const tokensOfOne = (tokensPerRank(l) * m.expertsPerToken * l.expert * share) / m.experts;
  const slower = one * m.expertsPerToken * ((k.expertWidth * split) / m.ffn + k.gemmTokens / tokensOfOne);
  return { slower, unvisited: one * Math.max(0, m.experts / (l.expert * share) - m.expertsPerToken) };
}

function gemmRate(l: LayoutInput, gpu: Gpu, k: Constants): number {
  if (l.precision === 'fp32') return gpu.matmulFlops / 2;
  const low = lowPrecisionOf(l);
  const rate = low ? low.rate * gpu.fp8Flops : gpu.matmulFlops;
  const aligned = isAligned(l) ? 1 : k.misalignedGemm;
  return isLegacy(l) ? rate * k.legacyGemm * aligned : rate * aligned;
}

/** Tensor cores need rows of each operand that fill 128-byte lines: 64 elements of 16 bit. */
const isAligned = (l: LayoutInput) => (l.model.hidden / l.tensor) % 64 === 0 && (l.model.ffn / l.tensor) % 32 === 0;

/**
 * Time of FlexAttention relative to PyTorch's causal kernel for the same number of scores: 5.6 ms (with sinks) against 3.5 ms for forward
 * and backward of 8,192 tokens with 32 heads on an H200, each after another kernel had run (docs/evidence/2026-11-23-h200.md).
 */
const FLEX_ATTENTION = 1.6;

/** Half of the score matrix is masked, and tiled kernels skip it. Heads narrower than 128 use the tensor cores less well. */
function attentionSeconds(l: LayoutInput, gpu: Gpu, k: Constants): { forward: number; backward: number } {
  const m = l.model;
  const tokens = tokensPerRank(l);
  if (m.recurrence) {
    // Its products have the shape of those of attention kernels: small and sequential.
    const forward = (tokens * m.recurrence.flops) / l.tensor / gpu.attentionFlops;
    return { forward, backward: 2 * forward };
  }
  const full = (keys: number) => (4 * tokens * keys * m.heads * meanHeadSize(m)) / l.tensor;
  if (l.attention === 'flash' || l.attention === 'flash1') {
    const tuned = l.kernels === 'fused' || l.stack === 'jax' || l.loss === 'fused' || l.loss === 'chunked';
    const kernel = l.attention === 'flash1' ? k.flash1 : 1;
    const heads = (m.headSize / (m.headSize + 24)) * (152 / 128);
    const rate = (tuned ? gpu.tunedAttentionFlops : gpu.attentionFlops) * kernel * Math.min(1, heads);
    const masked = takesMask(l) ? FLEX_ATTENTION : 1;
    const selection = (2 * tokens * l.sequence * (m.scored ?? 0)) / l.tensor;
    const forward = (masked * full(keysInFull(l.model, l.sequence)) + selection) / 2 / rate;
    // Five products instead of two, at a slightly lower rate.
    return { forward, backward: 2.7 * forward };
  }
  const scores = (tokens * l.sequence * m.heads * 2) / l.tensor;
  const passes = l.attention === 'fused' ? k.fusedSoftmaxPasses : k.unfusedPasses;
  const forward = full(l.sequence) / (0.6 * gpu.matmulFlops) + (passes * scores) / gpu.memoryBytesPerSecond;
  return { forward, backward: 2 * forward };
}

/** Megatron's fused bias, dropout and GELU kernels are for GPT blocks; gated blocks of that generation used plain operations. */
function trafficScale(l: LayoutInput, k: Constants): number {
  if (isLegacy(l) && l.model.mlpMatrices === 2) return k.trafficLegacy;
  if (l.kernels === 'eager') return k.trafficEager;
  return l.kernels === 'compiled' ? k.trafficCompiled : k.trafficFused;
}

/** An RMSNorm computed by plain operations casts to fp32 and makes six passes: 34 bytes per element instead of 4; a block has two. */
const PLAIN_RMS_NORM_BYTES = 2 * 30;
/** A rotary embedding by plain operations: rotate halves and concatenate, two products, a sum; 18 bytes per element of queries and keys. */
const PLAIN_ROTARY_BYTES = 18;
/** Whether the run's software computes RMSNorm with plain operations instead of a fused kernel. */
export const hasPlainRmsNorm = (l: LayoutInput) =>
  l.kernels === 'eager' &&
  l.model.mlpMatrices === 3 &&
  l.stack !== 'nanotron' &&
  !(l.stack === 'deepspeed' && l.loss === 'fused');

/** Tokens are copied for each of their experts, sorted by expert, and the results are summed. */
const permutedElements = ({ model: m, tensor }: LayoutInput, k: Constants) =>
  m.experts > 1 ? (k.expertPasses * m.expertsPerToken * expertHiddenOf(m)) / tensor : 0;

const permutedBytes = (l: LayoutInput, k: Constants) =>
  elementBytesOf(l) * tokensPerRank(l) * permutedElements(l, k) * trafficScale(l, k);

/** Elements that are exchanged between the products of attention, or of a recurrence. */
const mixedTraffic = (m: LayoutInput['model']) =>
  m.recurrence ? 2 * m.recurrence.kept : 4 * (m.heads + m.kvHeads) * m.headSize;

/** Bytes that norms, residuals, rotary embedding and activation functions move in one forward block. */
function trafficBytes(l: LayoutInput, k: Constants): number {
  const m = l.model;
  const tokens = tokensPerRank(l);
  const dense = (12 * m.hidden) / (l.sequenceParallel ? l.tensor : 1);
  const wide = ((m.mlpMatrices === 3 ? 5 : 3) * activeFfn(m) + mixedTraffic(m)) / l.tensor;
  const elements = tokens * (dense + wide + permutedElements(l, k));
  const casts = k.fp8CastTraffic * (lowPrecisionOf(l)?.cast ?? 0);
  const cast = casts * tokens * (2 * m.hidden + (m.mlpMatrices * (m.ffn + (m.sharedFfn ?? 0))) / l.tensor);
  const share = l.sequenceParallel ? l.tensor : 1;
  const rotated = (PLAIN_ROTARY_BYTES * (m.heads + m.kvHeads) * m.headSize) / l.tensor;
  const norms = hasPlainRmsNorm(l) ? tokens * ((PLAIN_RMS_NORM_BYTES * m.hidden) / share + rotated) : 0;
  return elementBytesOf(l) * elements * trafficScale(l, k) + norms + cast;
}

/**
 * Matrix products of the head, of the gradients of its two operands, and of a reference's forward pass, each 2 FLOPs per weight and token.
 */
const headProducts = (l: LayoutInput) => 2 + (l.adapters === undefined ? 1 : 0) + (l.preferences ? 1 : 0);

/** Logits, loss and matrix products of the head, forward and backward, for one micro-batch on the stage that has them. */
export function headSeconds(l: LayoutInput, gpu: Gpu, k: Constants): number {
  const tokens = tokensPerRank(l);
  const logits = (headsOf(l.model) * tokens * l.model.vocabulary) / l.tensor;
  const rate = l.precision === 'fp32' ? gpu.matmulFlops / 2 : gpu.matmulFlops;
  const loss =
    (k.lossBytesPerLogit * (l.loss !== 'plain' || l.kernels === 'compiled' ? 0.5 : 1) * logits) /
    gpu.memoryBytesPerSecond;
  // A reference reads its logits once; the loss reads and writes them forward and backward.
  const passes = l.preferences ? 4 / 3 : 1;
  return (2 * headProducts(l) * logits * l.model.hidden) / rate + passes * loss;
}
