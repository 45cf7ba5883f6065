import { findModel } from '../lib/core/catalog/models';
import type { Row } from './planner-rows';

/** Vocabulary of GPT-2 padded to 128, which rows without one were measured with. */
export const USUAL_VOCABULARY = 51_200;
/** Sequence length of rows without one. */
const USUAL_SEQUENCE = 4096;

/** A shape with what follows from the rest: blocks from the parameter count, everything from a name the catalog knows. */
export function completed(m: Row['model']): Row['model'] {
  const shape = findModel(m.name);
  const seq = m.seq_len ?? USUAL_SEQUENCE;
  if (!m.hidden && shape) {
    return {
      ...m,
      seq_len: seq,
      layers: shape.layers,
      hidden: shape.hiddenSize,
      heads: shape.attentionHeads,
      kv_heads: shape.kvHeads,
      ffn: shape.ffnHiddenSize,
      vocab: shape.vocabularySize,
      mlp_matrices: shape.gatedMlp ? 3 : 2,
      tied_embeddings: shape.tiedEmbeddings,
    };
  }
  if (m.layers || !m.params_b || !m.hidden || !m.ffn) return { ...m, seq_len: seq };
  const embeddings = (m.tied_embeddings ? 1 : 2) * (m.vocab ?? USUAL_VOCABULARY) * m.hidden;
  const block =
    m.hidden * (2 * m.hidden + (2 * m.hidden * (m.kv_heads ?? 1)) / (m.heads ?? 1) + (m.mlp_matrices ?? 3) * m.ffn);
  return { ...m, seq_len: seq, layers: Math.max(1, Math.round((m.params_b * 1e9 - embeddings) / block)) };
}
