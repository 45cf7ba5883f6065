import {
  activeLayerParameters,
  type BlockShape,
  embeddingParameters,
  layerParameters,
  type ParameterShape,
  sumOverBlocks,
} from '../catalog/model/parameters';

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
