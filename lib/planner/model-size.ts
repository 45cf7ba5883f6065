import type { PlanModel } from './layout';

const attentionParameters = (m: PlanModel) => m.headSize * m.hidden * (2 * m.heads + 2 * m.kvHeads);

const mlpParameters = (m: PlanModel) => m.mlpMatrices * m.hidden * m.ffn;

/** Parameters of one block; norms are left out (below 0.01 %). */
export const layerParameters = (m: PlanModel) => attentionParameters(m) + m.experts * mlpParameters(m);

/** Parameters of one block that one rank gathers: experts are divided over the expert-parallel ranks. */
export const blockParametersPerExpertRank = (m: PlanModel, expert: number) =>
  attentionParameters(m) + (m.experts / expert) * mlpParameters(m);

/** Parameters of one block that one token meets. */
export const activeLayerParameters = (m: PlanModel) => attentionParameters(m) + m.expertsPerToken * mlpParameters(m);

export const embeddingParameters = (m: PlanModel) => m.vocabulary * m.hidden;

/** Embeddings count twice unless tied. */
export const totalParameters = (m: PlanModel) =>
  m.layers * layerParameters(m) + (m.tiedEmbeddings ? 1 : 2) * embeddingParameters(m);

/** FLOPs of one token, forward and backward: 6 (N_blocks + V d) + 12 L d s, attention counted in full, recompute not counted. */
export const modelFlopsPerToken = (m: PlanModel, sequence: number) =>
  6 * (m.layers * activeLayerParameters(m) + embeddingParameters(m)) + 12 * m.layers * m.heads * m.headSize * sequence;
