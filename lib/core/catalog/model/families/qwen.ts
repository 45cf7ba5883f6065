import type { ConfigFields } from '../config-fields';
import { layersWhere } from '../config-window';
import { decoder, type Families, type Family, LOCAL_EXPERTS } from './decoder';

/** Qwen 2 and 3: windows from layer `max_window_layers` on, only with `use_sliding_window`. */
function windowed(f: ConfigFields): (layer: number) => boolean {
  const first = f.count('max_window_layers', 28, 0);
  const uses = f.flag('use_sliding_window');
  return (layer) => uses && layer >= first;
}

/** Qwen 2 and 2.5: Llama with biases of queries, keys and values, and windows from layer `max_window_layers` on. */
const qwen2: Family = (f) => {
  f.only({ use_mrope: false });
  const bias = { traits: { outputBias: false }, fields: { attentionBias: true } };
  return decoder(f, { kvHeads: 32, windowed: windowed(f), ...bias });
};

/** Qwen 3: QK norm on each head, no biases of queries, keys and values by default. */
const qwen3: Family = (f) =>
  decoder(f, { headSize: 128, kvHeads: 32, windowed: windowed(f), biased: true, fields: { qkNorm: true } });

/** Layers without experts: those in `mlp_only_layers`, and those that are not a `decoder_sparse_step`-th layer. */
export function denseLayers(f: ConfigFields, layers: number): number[] {
  const step = f.count('decoder_sparse_step', 1);
  const only = f.layerNumbers('mlp_only_layers', layers) ?? [];
  const dense = layersWhere(layers, (layer) => only.includes(layer) || (layer + 1) % step !== 0);
  f.lists.set('mlp_only_layers', dense);
  return dense;
}

/** Qwen 3 MoE: Qwen 3's attention with 128 experts and no shared expert. */
const qwen3Moe: Family = (f) => {
  const uses = f.flag('use_sliding_window');
  f.ignore('max_window_layers');
  f.only({ use_qk_norm: true, qkv_bias: false, shared_expert_intermediate_size: 0 });
  return decoder(f, {
    windowed: () => uses,
    kvHeads: 4,
    biased: true,
    fields: { qkNorm: true },
    mixture: ({ layers }) => ({
      keys: LOCAL_EXPERTS,
      experts: 128,
      perToken: 8,
      dense: denseLayers(f, layers),
      routing: { normalise: f.flag('norm_topk_prob') },
    }),
  });
};

/** Qwen 1.5 to 3, and MiMo. */
export const QWEN_FAMILIES: Families = {
  qwen2,
  /** MiMo: Qwen 2 with prediction modules, whose weights are in the files but which its model does not run. */
  mimo: (f) => {
    f.only({ attention_bias: true });
    f.ignore('num_nextn_predict_layers');
    return qwen2(f);
  },
  qwen3,
  // Text tokens of the multimodal models: all three positions of a token are equal.
  qwen3_vl_text: qwen3,
  /** Qwen 1.5 and 2 MoE: one shared expert with a gate, experts in every `decoder_sparse_step`-th layer. */
  qwen2_moe: (f) => {
    const [uses, end] = [f.flag('use_sliding_window'), f.count('max_window_layers', 28, 0)];
    const sharedFfnHiddenSize = f.count('shared_expert_intermediate_size', 5632);
    return decoder(f, {
      kvHeads: 16,
      windowed: (layer) => uses && layer % 2 === 0 && layer < end,
      window: uses ? 4096 : 0,
      mixture: ({ layers }) => ({
        experts: 60,
        perToken: 4,
        dense: denseLayers(f, layers),
        routing: { normalise: f.flag('norm_topk_prob') },
        sharedExperts: 1,
      }),
      traits: { sharedFfnHiddenSize, sharedExpertGate: true, outputBias: false },
      fields: { attentionBias: f.flag('qkv_bias', true) },
    });
  },
  qwen3_moe: qwen3Moe,
  qwen3_vl_moe_text: qwen3Moe,
};
