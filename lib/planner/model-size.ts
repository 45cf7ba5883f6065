import {
  activeLayerParameters,
  type BlockShape,
  embeddingParameters,
  hasAttention,
  layerParameters,
  type ParameterShape,
  sumOverBlocks,
} from '../catalog/model/parameters';

/** Inner size of the feed-forward blocks that one token visits. */
export const activeFfn = (m: BlockShape) => m.ffn * m.expertsPerToken + (m.sharedFfn ?? 0);

/** Size of a head in the mean of its two products, with keys and with values. */
export const meanHeadSize = (m: BlockShape) => (m.headSize + (m.valueHeadSize ?? m.headSize)) / 2;

/** Parameters of one block in the mean over all blocks. */
export const meanLayerParameters = (m: ParameterShape) => sumOverBlocks(m, layerParameters) / m.layers;

/** Twice the keys that a query sees in the mean: `sequence` without a window, because half the score matrix is masked. */
export const keysInFull = (m: BlockShape, sequence: number): number => {
  const window = Math.min(m.window ?? sequence, sequence);
  return 2 * window - window ** 2 / sequence;
};

/** FLOPs of one token's attention in all blocks, forward and backward: 12 d s per block, counted in full. */
export const attentionFlopsPerToken = (m: ParameterShape, sequence: number) =>
  sumOverBlocks(
    m,
    (block) =>
      3 * (block.recurrence?.flops ?? 0) +
      (hasAttention(block) ? 12 * block.heads * meanHeadSize(block) * keysInFull(block, sequence) : 0),
  );

/** Elements of one token that products of attention and of a recurrence read and write. */
export const mixedElements = (m: BlockShape): number =>
  (m.recurrence?.kept ?? 0) + (hasAttention(m) ? 2 * (m.heads + m.kvHeads) * meanHeadSize(m) : 0);

/** FLOPs of one token, forward and backward: 6 (N_blocks + V d) + 12 L d s, attention counted in full, recompute not counted. */
export const modelFlopsPerToken = (m: ParameterShape, sequence: number) =>
  6 * (sumOverBlocks(m, activeLayerParameters) + headsOf(m) * embeddingParameters(m)) +
  attentionFlopsPerToken(m, sequence);

/** How often a token meets the head: once more for each module that predicts a further token. */
export const headsOf = (m: ParameterShape): number => 1 + (m.mtpLayers ?? 0);

/** Blocks that pipeline stages divide: modules that predict further tokens stand behind them. */
export const stageBlocks = (m: ParameterShape): number => m.layers - (m.mtpLayers ?? 0);
