import { attentionParameters, hasAttention } from '../../catalog/model/parameters';
import type { Constants } from '../constants';
import type { Gpu } from '../gpu';
import { expertTensorOf, type LayoutInput, sequencesPerSample, takesMask } from '../layout';
import { activeFfn, headsOf, keysInFull, meanHeadSize, mixedElements } from '../model-size';
import { lowPrecisionOf } from './low-precision';

/** Seconds of one block on one GPU for one micro-batch, communication left out. */
export interface BlockSeconds {
  gemmForward: number;
  attentionForward: number;
  attentionBackward: number;
  trafficForward: number;
  /** Least time the host needs to launch the forward kernels. */
  launchForward: number;
}

/** Kernels of one forward block, and the host's time for each. */
const LAUNCHES: Readonly<Record<LayoutInput['kernels'], number>> = { eager: 34, compiled: 14, fused: 20 };
const LAUNCH_SECONDS = 5e-6;

/** Products of one block: query-key-value, attention output, up (and gate), down. */
const GEMMS_PER_BLOCK = 4;

/** Tokens one GPU holds of one micro-batch. */
export const tokensPerRank = (l: LayoutInput) => (l.microBatch * sequencesPerSample(l) * l.sequence) / l.context;

/** Seconds that one GPU computes in one block for one micro-batch, by what the time goes into. */
export function blockSeconds(l: LayoutInput, gpu: Gpu, k: Constants): BlockSeconds {
  const attention = attentionSeconds(l, gpu, k);
  return {
    gemmForward: gemmSeconds(l, gpu, k),
    attentionForward: attention.forward,
    attentionBackward: attention.backward,
    trafficForward: trafficBytes(l, k) / gpu.memoryBytesPerSecond,
    launchForward: LAUNCHES[l.kernels] * LAUNCH_SECONDS,
  };
}

const isLegacy = (l: LayoutInput) => l.stack === 'megatron-legacy';

/** Additive roofline: arithmetic at the fitted ceiling plus the operands' way through memory, so that thin shards run slower. */
function gemmSeconds(l: LayoutInput, gpu: Gpu, k: Constants): number {
  const m = l.model;
  const t = l.tensor;
  const tokens = tokensPerRank(l);
  const active = m.expertsPerToken;
  const inner = m.mlpMatrices * activeFfn(m);
  const weights = (attentionParameters(m) + inner * m.hidden) / t;
  const experts = expertProducts(l, k);
  const columns = (mixedElements(m) + inner) / t + m.hidden * (2 + 2 * active);
  const bytes = lowPrecisionOf(l)?.bytes ?? 2;
  const rate = gemmRate(l, gpu, k) / (1 + k.gemmTokens / tokens);
  return (
    (2 * tokens * (weights + experts.slower)) / rate +
    (bytes * (weights + experts.unvisited + tokens * columns)) / gpu.memoryBytesPerSecond +
    GEMMS_PER_BLOCK * k.gemmTailSeconds
  );
}

/**
 * What the experts of a block add: weights by which the time of a token's own experts is longer than that of a dense block, because each
 * product is small and gets few of the tokens; and weights that are read beyond those of one token's experts.
 */
function expertProducts(l: LayoutInput, k: Constants): { slower: number; unvisited: number } {
  const m = l.model;
  if (m.experts <= 1) return { slower: 0, unvisited: 0 };
  const one = (m.mlpMatrices * m.ffn * m.hidden) / l.tensor;
  // The ranks of a tensor-parallel group have their tokens between them; an expert may be split over fewer of them, and gets tokens of fewer groups.
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

/** Tensor cores want each operand's row to fill 128-byte lines: 64 elements of 16 bit. */
const isAligned = (l: LayoutInput) => (l.model.hidden / l.tensor) % 64 === 0 && (l.model.ffn / l.tensor) % 32 === 0;

/**
 * How much longer FlexAttention takes than PyTorch's causal kernel for as many scores: 5.6 ms (with sinks) against 3.5 ms for forward and
 * backward of 8,192 tokens with 32 heads on an H200, each where another kernel had run before (docs/evidence/2026-11-23-h200.md).
 */
const FLEX_ATTENTION = 1.6;

const NO_SECONDS = { forward: 0, backward: 0 };

/** Half the score matrix is masked; tiled kernels skip it. Heads narrower than 128 fill the tensor cores less. */
function attentionSeconds(l: LayoutInput, gpu: Gpu, k: Constants): { forward: number; backward: number } {
  const m = l.model;
  const tokens = tokensPerRank(l);
  if (m.recurrence) {
    // Its products are those of attention's kernels in shape: small, one after another.
    const forward = (tokens * m.recurrence.flops) / l.tensor / gpu.attentionFlops;
    const { recurrence: _, ...alone } = m;
    const beside = hasAttention(m) ? attentionSeconds({ ...l, model: alone }, gpu, k) : NO_SECONDS;
    return { forward: forward + beside.forward, backward: 2 * forward + beside.backward };
  }
  const full = (keys: number) => (4 * tokens * keys * m.heads * meanHeadSize(m)) / l.tensor;
  if (l.attention === 'flash' || l.attention === 'flash1') {
    const tuned = l.kernels === 'fused' || l.stack === 'jax' || l.loss === 'fused' || l.loss === 'chunked';
    const kernel = l.attention === 'flash1' ? k.flash1 : 1;
    const heads = (m.headSize / (m.headSize + 24)) * (152 / 128);
    const rate = (tuned ? gpu.tunedAttentionFlops : gpu.attentionFlops) * kernel * Math.min(1, heads);
    const masked = takesMask(l) ? FLEX_ATTENTION : 1;
    const forward = (masked * full(keysInFull(l.model, l.sequence))) / 2 / rate;
    // Five products instead of two, at a little less of the peak.
    return { forward, backward: 2.7 * forward };
  }
  const scores = (tokens * l.sequence * m.heads * 2) / l.tensor;
  const passes = l.attention === 'fused' ? k.fusedSoftmaxPasses : k.unfusedPasses;
  const forward = full(l.sequence) / (0.6 * gpu.matmulFlops) + (passes * scores) / gpu.memoryBytesPerSecond;
  return { forward, backward: 2 * forward };
}

/** Megatron's fused bias, dropout and GELU kernels are those of GPT blocks; gated blocks of that time ran as plain operations. */
function trafficScale(l: LayoutInput, k: Constants): number {
  if (isLegacy(l) && l.model.mlpMatrices === 2) return k.trafficLegacy;
  if (l.kernels === 'eager') return k.trafficEager;
  return l.kernels === 'compiled' ? k.trafficCompiled : k.trafficFused;
}

/** An RMSNorm written as plain operations casts to fp32 and passes six times: 34 bytes an element against 4, and a block has two. */
const PLAIN_RMS_NORM_BYTES = 2 * 30;
/** A rotary embedding in plain operations: halves turned and joined, two products, a sum; 18 bytes an element of queries and keys. */
const PLAIN_ROTARY_BYTES = 18;
/** Whether the software of the run computes RMSNorm in plain operations rather than in one fused kernel. */
export const hasPlainRmsNorm = (l: LayoutInput) =>
  l.kernels === 'eager' &&
  l.model.mlpMatrices === 3 &&
  l.stack !== 'nanotron' &&
  !(l.stack === 'deepspeed' && l.loss === 'fused');

/** Tokens are copied for each of their experts, in the order of the experts, and what comes back is summed. */
const permutedElements = ({ model: m, tensor }: LayoutInput, k: Constants) =>
  m.experts > 1 ? (k.expertPasses * m.expertsPerToken * m.hidden) / tensor : 0;

/** Elements that pass between the products of attention and of a recurrence. */
const mixedTraffic = (m: LayoutInput['model']) =>
  2 * (m.recurrence?.kept ?? 0) + (hasAttention(m) ? 4 * (m.heads + m.kvHeads) * m.headSize : 0);

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
  return 2 * elements * trafficScale(l, k) + norms + cast;
}

/** Products of the head, of its two operands' gradients, and of a reference's forward pass, each 2 FLOPs a weight and token. */
const headProducts = (l: LayoutInput) => 2 + (l.adapters === undefined ? 1 : 0) + (l.preferences ? 1 : 0);

/** Logits, loss and the head's products, forward and backward, of one micro-batch on the stage that has them. */
export function headSeconds(l: LayoutInput, gpu: Gpu, k: Constants): number {
  const tokens = tokensPerRank(l);
  const logits = (headsOf(l.model) * tokens * l.model.vocabulary) / l.tensor;
  const rate = l.precision === 'fp32' ? gpu.matmulFlops / 2 : gpu.matmulFlops;
  const loss =
    (k.lossBytesPerLogit * (l.loss !== 'plain' || l.kernels === 'compiled' ? 0.5 : 1) * logits) /
    gpu.memoryBytesPerSecond;
  // A reference reads its logits once, where the loss reads and writes them forward and backward.
  const passes = l.preferences ? 4 / 3 : 1;
  return (2 * headProducts(l) * logits * l.model.hidden) / rate + passes * loss;
}
