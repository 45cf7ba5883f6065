import { attentionParameters, embeddingParameters, expertParameters } from '../catalog/models';
import type { PlanModel } from './layout';

/** Parameters of one block that one rank gathers: experts are divided over the expert-parallel ranks. */
export const blockParametersPerExpertRank = (m: PlanModel, expert: number) =>
  attentionParameters(m) + (m.experts / expert) * expertParameters(m);

/** Parameters of one block that one token meets. */
export const activeLayerParameters = (m: PlanModel) => attentionParameters(m) + m.expertsPerToken * expertParameters(m);

/** FLOPs of one token, forward and backward: 6 (N_blocks + V d) + 12 L d s, attention counted in full, recompute not counted. */
export const modelFlopsPerToken = (m: PlanModel, sequence: number) =>
  6 * (m.layers * activeLayerParameters(m) + embeddingParameters(m)) + 12 * m.layers * m.heads * m.headSize * sequence;
