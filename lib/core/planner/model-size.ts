import {
  activeLayerParameters,
  type BlockShape,
  embeddingParameters,
  layerParameters,
  type ParameterShape,
  sumOverBlocks,
} from '../catalog/model/parameters';
import type { LayoutInput } from './layout';

/** Total inner size of the feed-forward blocks that process one token. */
export const activeFfn = (m: BlockShape) => m.ffn * m.expertsPerToken + (m.sharedFfn ?? 0);

/** Size of the input and the output of a routed expert. */
export const expertHiddenOf = (m: BlockShape) => m.expertHidden ?? m.hidden;

/** Weights of the feed-forward blocks that one token meets, and of the projections to and from the space of its experts. */
export const activeFfnWeights = (m: BlockShape) =>
  m.mlpMatrices * (m.ffn * m.expertsPerToken * expertHiddenOf(m) + (m.sharedFfn ?? 0) * m.hidden) +
  2 * m.hidden * (m.expertHidden ?? 0);

/** Mean head size over the two matrix products of attention, with keys and with values. */
export const meanHeadSize = (m: BlockShape) => (m.headSize + (m.valueHeadSize ?? m.headSize)) / 2;

/** Mean number of parameters per block. */
export const meanLayerParameters = (m: ParameterShape) => sumOverBlocks(m, layerParameters) / m.layers;

/** Twice the mean number of keys that a query attends to: `sequence` without a window, because half of the score matrix is masked. */
export const keysInFull = (m: BlockShape, sequence: number): number => {
  const window = Math.min(m.window ?? sequence, sequence);
  return 2 * window - window ** 2 / sequence;
};

/** FLOPs of one token's attention in all blocks, forward and backward: 12 d s per block, without subtracting the masked half. */
export const attentionFlopsPerToken = (m: ParameterShape, sequence: number) =>
  sumOverBlocks(
    m,
    (block) =>
      (block.recurrence
        ? 3 * block.recurrence.flops
        : 12 * block.heads * meanHeadSize(block) * keysInFull(block, sequence)) +
      6 * (block.scored ?? 0) * sequence,
  );

/** Elements per token that the products of attention, or of a recurrence, read and write. */
export const mixedElements = (m: BlockShape): number =>
  m.recurrence?.kept ?? 2 * (m.heads + m.kvHeads) * meanHeadSize(m);

/**
 * FLOPs per token, forward and backward: 6 (N_blocks + V d) + 12 L d s, without subtracting the masked half of attention and without
 * recomputation.
 */
export const modelFlopsPerToken = (m: ParameterShape, sequence: number) =>
  6 * (sumOverBlocks(m, activeLayerParameters) + headsOf(m) * embeddingParameters(m)) +
  attentionFlopsPerToken(m, sequence);

/** How often the head is applied to a token: once, and once more for each multi-token prediction module. */
export const headsOf = (m: ParameterShape): number => 1 + (m.mtpLayers ?? 0);

/** Blocks that are divided among pipeline stages; multi-token prediction modules come after them. */
export const stageBlocks = (m: ParameterShape): number => m.layers - (m.mtpLayers ?? 0);

/** Parameters of the largest matrix of a block. */
export const largestMatrix = (m: BlockShape): number =>
  m.hidden * Math.max(m.ffn, m.sharedFfn ?? 0, m.heads * m.headSize);

/**
 * Splits a model with different kinds of blocks (dense layers before those with experts, windows in every second layer) into one layout per
 * kind, with that kind's share of the blocks.
 */
export function kindsOf(l: LayoutInput): { share: number; layout: LayoutInput }[] {
  // A search calls this for every layout, so models with uniform blocks are not copied.
  if (!l.model.kinds) return [{ share: 1, layout: l }];
  const { kinds, ...model } = l.model;
  return kinds.map(({ layers, block }) => ({
    share: layers / model.layers,
    // Options that a kind does not have must not be inherited from the most common kind.
    layout: { ...l, model: { ...model, ...NO_OPTIONS, ...block } },
  }));
}

const NO_OPTIONS = {
  valueHeadSize: undefined,
  sharedFfn: undefined,
  sharedGate: undefined,
  window: undefined,
  latent: undefined,
  expertBiases: undefined,
  recurrence: undefined,
  gatedAttention: undefined,
  attention: undefined,
  scored: undefined,
  streams: undefined,
  expertHidden: undefined,
};

/** The value of `of` for the kind of block that needs most. */
export const mostOfKinds = (l: LayoutInput, of: (layout: LayoutInput) => number): number =>
  Math.max(...kindsOf(l).map(({ layout }) => of(layout)));

/**
 * Number of blocks of the fullest pipeline stage, and of the last one, which also has the head. Megatron and similar libraries give every stage
 * the same number of blocks; nanotron also counts the head, by its cost.
 */
export function stageLayers(l: LayoutInput): { most: number; last: number } {
  const { layers } = l.model;
  const even = Math.ceil(layers / l.pipeline);
  if (l.pipeline === 1) return { most: layers, last: layers };
  const most = l.stack === 'nanotron' ? Math.max(even, balanced(l)) : even;
  return { most, last: Math.max(1, layers - most * (l.pipeline - 1)) };
}

function balanced(l: LayoutInput): number {
  const headInBlocks = embeddingParameters(l.model) / meanLayerParameters(l.model);
  const share = Math.round((l.model.layers + headInBlocks) / l.pipeline);
  return Math.min(share, Math.floor((l.model.layers - 1) / (l.pipeline - 1)));
}
