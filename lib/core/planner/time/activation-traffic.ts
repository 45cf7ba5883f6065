import { elementBytesOf, type LayoutInput } from '../layout';
import { meanHeadSize } from '../model-size';
import { tokensPerRank } from './compute';

/** Collectives of one kind in one block and micro-batch, forward and backward: their number, and the total bytes of each over all ranks. */
export interface ActivationTraffic {
  gathers: number;
  scatters: number;
  bytes: number;
}

/**
 * Two AllReduces forward and two backward, each as an AllGather and a ReduceScatter with sequence parallelism. A recomputed block gathers
 * and scatters again; PyTorch stops recomputing before the block's last ReduceScatter, which only a norm after it would need, and its
 * per-operation checkpointing keeps the results of ReduceScatters (a test counts both on the trainer).
 */
export function tensorTraffic(l: LayoutInput): ActivationTraffic {
  const bytes = elementBytesOf(l) * tokensPerRank(l) * l.model.hidden;
  if (l.tensor === 1) return { gathers: 0, scatters: 0, bytes };
  const again = { none: 0, full: 2, block: 1, op: 1, products: 1, core: 0 }[l.recompute];
  if (!l.isOwnTrainer) return { gathers: 4 + again, scatters: 4 + again, bytes };
  const scattersAgain = l.normsBehind ? 2 : 1;
  return { gathers: l.recompute === 'none' ? 4 : 6, scatters: l.recompute === 'full' ? 4 + scattersAgain : 4, bytes };
}

/**
 * Keys and values of a sequence, passed around a ring or gathered: once forward, their gradients once backward, and once more to compute
 * the gradients of attention. The built-in trainer gathers, and keeps the result unless the block is recomputed.
 */
export function contextTraffic(l: LayoutInput): ActivationTraffic {
  const bytes = (elementBytesOf(l) * tokensPerRank(l) * l.context * l.model.kvHeads * meanHeadSize(l.model)) / l.tensor;
  if (l.context === 1) return { gathers: 0, scatters: 0, bytes };
  const keeps = l.isOwnTrainer && l.recompute === 'none';
  return { gathers: keeps ? 2 : 4, scatters: 2, bytes };
}

/**
 * Tokens to their experts and back, forward and backward, and once more if the built-in trainer recomputes the block. `bytes`: the copies
 * that one rank sends in one exchange, one for each expert of a token.
 */
export function expertTraffic(l: LayoutInput): { exchanges: number; bytes: number } {
  const bytes = (elementBytesOf(l) * tokensPerRank(l) * l.model.expertsPerToken * l.model.hidden) / l.tensor;
  // In models with both kinds of blocks, those without experts send nothing.
  if (l.expert === 1 || l.model.experts === 1) return { exchanges: 0, bytes };
  return { exchanges: l.isOwnTrainer && l.recompute !== 'none' ? 6 : 4, bytes };
}
