import type { LayoutInput } from '../layout';
import { meanHeadSize } from '../model-size';
import { tokensPerRank } from './compute';

/** Collectives of one kind in one block and micro-batch, forward and backward: how many, and the bytes that each has on all ranks together. */
export interface ActivationTraffic {
  gathers: number;
  scatters: number;
  bytes: number;
}

/** Hidden states travel in 16 bit. */
const BYTES = 2;

/**
 * Two AllReduces forward and two backward, each as a gather and a scatter where positions are shared (sequence parallelism). A recomputed
 * block gathers and scatters again; PyTorch stops recomputing before the block's last scatter, which nothing but a norm behind it needs, and
 * its per-operation checkpointing keeps the results of scatters (a test counts both on the trainer).
 */
export function tensorTraffic(l: LayoutInput): ActivationTraffic {
  const bytes = BYTES * tokensPerRank(l) * l.model.hidden;
  if (l.tensor === 1) return { gathers: 0, scatters: 0, bytes };
  const again = { none: 0, full: 2, block: 1, op: 1, core: 0 }[l.recompute];
  if (!l.isOwnTrainer) return { gathers: 4 + again, scatters: 4 + again, bytes };
  const scattersAgain = l.normsBehind ? 2 : 1;
  return { gathers: l.recompute === 'none' ? 4 : 6, scatters: l.recompute === 'full' ? 4 + scattersAgain : 4, bytes };
}

/**
 * Keys and values of a sequence, passed round a ring or gathered: once forward, their gradients once backward, and once more to compute
 * attention's gradients. The built-in trainer gathers; what it has gathered stays there, unless the block is recomputed.
 */
export function contextTraffic(l: LayoutInput): ActivationTraffic {
  const bytes = (BYTES * tokensPerRank(l) * l.context * l.model.kvHeads * meanHeadSize(l.model)) / l.tensor;
  if (l.context === 1) return { gathers: 0, scatters: 0, bytes };
  const keeps = l.isOwnTrainer && l.recompute === 'none';
  return { gathers: keeps ? 2 : 4, scatters: 2, bytes };
}

/**
 * Tokens to their experts and back, forward and backward, and once more where the built-in trainer recomputes the block. `bytes`: of the
 * copies that one rank sends in one exchange, one for each expert of a token.
 */
export function expertTraffic(l: LayoutInput): { exchanges: number; bytes: number } {
  const bytes = (BYTES * tokensPerRank(l) * l.model.expertsPerToken * l.model.hidden) / l.tensor;
  // Blocks without experts, in models that have both kinds, send nothing.
  if (l.expert === 1 || l.model.experts === 1) return { exchanges: 0, bytes };
  return { exchanges: l.isOwnTrainer && l.recompute !== 'none' ? 6 : 4, bytes };
}
