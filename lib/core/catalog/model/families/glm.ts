import type { ConfigFields } from '../config-fields';
import { allBut, layersWhere, never } from '../config-window';
import { hasWindow } from '../parameters';
import type { ModelShape } from '../shape';
import {
  biasedRouting,
  type Decoder,
  decoder,
  denseLayersOf,
  EXPERTS,
  type Families,
  type Family,
  type GroupDefaults,
  LOCAL_EXPERTS,
  type Mixture,
  ROUTED_EXPERTS,
} from './decoder';

const glm: Family = (f) =>
  decoder(f, {
    headSize: 128,
    epsilon: 1.5625e-7,
    kvHeads: 2,
    windowed: never,
    partial: 0.5,
    traits: { interleavedRope: true, outputBias: false },
    fields: { attentionBias: f.flag('attention_bias', true) },
  });

interface Grouped extends Decoder {
  dense: number;
  /** @default - the names of DeepSeek */
  keys?: readonly string[];
  experts?: number;
  perToken?: number;
  groups?: GroupDefaults;
  scaling?: string;
}

/** Grouped-query attention, QK norm, routed experts with a biased sigmoid router, and shared experts. */
function routed(f: ConfigFields, d: Grouped): ModelShape {
  f.ignore('num_nextn_predict_layers num_mtp_layers');
  const keys = d.keys ?? ROUTED_EXPERTS;
  const experts = f.count(keys, d.experts);
  return decoder(f, {
    windowed: never,
    biased: true,
    ...d,
    mixture: ({ layers }) => ({
      keys,
      experts,
      perToken: d.perToken,
      dense: denseLayersOf(f, layers, d.dense),
      sharedExperts: f.count(['n_shared_experts', 'num_shared_experts'], 1, 0),
      routing: biasedRouting(f, experts, d.groups),
    }),
    traits: { routedScaling: f.number(d.scaling ?? 'routed_scaling_factor', 1), ...d.traits },
  });
}

/** If some layers have a window, the others have no rotary positions. */
function unrotatedBesideWindows(m: ModelShape): Pick<ModelShape, 'unrotatedLayers'> {
  if (!m.slidingWindow) return {};
  const whole = layersWhere(m.layers, (layer) => !hasWindow(m.slidingWindow, layer));
  return whole.length > 0 ? { unrotatedLayers: whole } : {};
}

/** Windows of EXAONE: a period as a number, or a pattern of letters in which L is a layer with a window (LLLG). */
function exaoneWindows(f: ConfigFields): Pick<Decoder, 'windowed' | 'window'> {
  const letters = f.letters('sliding_window_pattern', /^[LG]+$/);
  const period = letters === undefined ? f.count('sliding_window_pattern', 4) : 1;
  if (f.isNull('sliding_window')) return { windowed: never };
  return { windowed: letters ? (layer) => letters[layer % letters.length] === 'L' : allBut(period), window: 4096 };
}

/** Keys of Hunyuan's published files that its modules do not use. */
const HUNYUAN_IGNORED = `use_qk_norm use_cla cla_share_factor org_vocab_size attention_head_dim add_classification_head class_num mlp_bias norm_type pool_type
  use_rotary_pos_emb use_mixed_mlp_moe num_shared_expert moe_layer_num_skipped moe_drop_tokens moe_random_routing_dropped_token
  num_experts_per_tok_dense use_mla`;

/** Hunyuan: the shared expert has the size of a dense block. */
const hunyuanOf = (f: ConfigFields, mixture?: Mixture): ModelShape => {
  f.ignore(HUNYUAN_IGNORED);
  const traits = { untrained: ['norms of queries and keys behind rotary positions'] };
  return decoder(f, { epsilon: 1e-5, windowed: never, biased: true, traits, fields: { qkNorm: true }, mixture });
};

const ernieOf = (f: ConfigFields, d: Decoder): ModelShape => {
  const bias = f.flag('use_bias');
  return decoder(f, {
    tied: true,
    theta: 500_000,
    epsilon: 1e-5,
    windowed: never,
    ...d,
    traits: { interleavedRope: true, ...(bias && { mlpBias: true }), ...d.traits },
    fields: { ...(bias && { attentionBias: true }) },
  });
};

/** GLM and other mixtures whose routing follows DeepSeek-V3, with grouped-query attention. */
export const GLM_FAMILIES: Families = {
  glm,
  /** GLM-4 0414: GLM with sandwich norms. */
  glm4: (f) => ({ ...glm(f), normPlacement: 'sandwich' }),
  /** GLM-4.5 and 4.6: sigmoid routing with a bias, shared experts, dense layers first. */
  glm4_moe: (f) =>
    routed(f, {
      dense: 1,
      epsilon: 1e-5,
      experts: 128,
      perToken: 8,
      kvHeads: 8,
      partial: 0.5,
      traits: { outputBias: false },
      fields: { qkNorm: f.flag('use_qk_norm') },
    }),
  /** Solar Open: GLM-4.5's routing in every layer, without QK norm. */
  solar_open: (f) => {
    f.only({ use_qk_norm: false });
    f.ignore('intermediate_size');
    return routed(f, {
      dense: 0,
      theta: 1_000_000,
      epsilon: 1e-5,
      headSize: 128,
      kvHeads: 8,
      experts: 128,
      perToken: 8,
      ffnKey: 'moe_intermediate_size',
      traits: { outputBias: false },
    });
  },
  /** dots.llm1: QK norm, sigmoid routing with a bias, windows from layer `max_window_layers` on. */
  dots1: (f) => {
    const first = f.count('max_window_layers', 62, 0);
    f.only({ moe_layer_freq: 1, use_sliding_window: false });
    return routed(f, {
      dense: 0,
      kvHeads: 32,
      groups: { normalise: false },
      windowed: (layer) => layer >= first,
      window: 4096,
      fields: { qkNorm: true },
    });
  },
  /** EXAONE 4: QK norm, norms after attention and MLP; if some layers have a window, the others have no rotary positions. */
  exaone4: (f) => {
    const m = decoder(f, { epsilon: 1e-5, kvHeads: 32, ...exaoneWindows(f) });
    return { ...m, ...unrotatedBesideWindows(m), qkNorm: true, normPlacement: 'post' };
  },
  /** EXAONE MoE: EXAONE 4's windows and QK norm, norms before attention and MLP, sigmoid routing with a bias. */
  exaone_moe: (f) => {
    const m = routed(f, {
      dense: 1,
      kvHeads: 32,
      epsilon: 1e-5,
      keys: ['num_experts'],
      experts: 64,
      perToken: 8,
      ...exaoneWindows(f),
    });
    return { ...m, ...unrotatedBesideWindows(m), qkNorm: true };
  },
  /** Hunyuan V3: QK norm, sigmoid routing with a bias, a shared expert. */
  hy_v3: (f) => {
    f.only({ mlp_bias: false });
    f.ignore('enable_moe_fp32_combine enable_attention_fp32_softmax enable_lm_head_fp32');
    return routed(f, {
      dense: 1,
      epsilon: 1e-5,
      theta: 11_158_840,
      headSize: 128,
      kvHeads: 8,
      keys: EXPERTS,
      experts: 192,
      perToken: 8,
      scaling: 'router_scaling_factor',
      fields: { qkNorm: true },
    });
  },
  /** Mellum: QK norm, softmax routing, no shared expert. */
  mellum: (f) => {
    // Its positions have sections per layer type alone: other keys have no effect.
    f.only({ rope_theta: undefined, rope_scaling: undefined, rope_local_base_freq: undefined });
    f.ignore('num_nextn_predict_layers mtp_layer_types mtp_mlp_layer_types');
    return decoder(f, {
      headSize: 128,
      kvHeads: 4,
      windowed: never,
      theta: 500_000,
      windowTheta: 10_000,
      biased: true,
      fields: { qkNorm: true },
      mixture: ({ layers }) => ({
        keys: LOCAL_EXPERTS,
        experts: 64,
        perToken: 8,
        routing: { normalise: f.flag('norm_topk_prob', true) },
        dense: denseLayersOf(f, layers, 0),
      }),
    });
  },
  /** Hunyuan dense V1: Llama with QK norm after the rotary positions. */
  hunyuan_v1_dense: (f) => {
    f.only({ num_experts: 1 });
    return hunyuanOf(f);
  },
  /** Hunyuan MoE V1: QK norm, one shared expert in each layer. */
  hunyuan_v1_moe: (f) =>
    hunyuanOf(f, {
      sizeKey: 'intermediate_size',
      keys: EXPERTS,
      experts: 1,
      perTokenKeys: ['moe_topk', 'num_experts_per_tok'],
      perToken: 1,
      sharedExperts: 1,
    }),
  /** ERNIE 4.5 dense: Llama with one flag for all biases. */
  ernie4_5: (f) => ernieOf(f, { kvHeads: 2, headSize: 128 }),
  /** ERNIE 4.5 MoE: softmax scores with a load-balancing bias, shared experts, dense layers first. */
  ernie4_5_moe: (f) => {
    f.only({ use_bias: false });
    f.ignore('moe_capacity moe_use_aux_free moe_gate moe_aux_loss_lambda num_nextn_predict_layers');
    const first = f.count('moe_layer_start_index', 1, 0);
    const last = f.number('moe_layer_end_index', -1);
    const interval = f.count('moe_layer_interval', 1);
    const isMixture = (layer: number) => (layer + 1) % interval === 0 && layer >= first && (last < 0 || layer <= last);
    return ernieOf(f, {
      kvHeads: 4,
      traits: { routingBiasIsParameter: true },
      mixture: ({ layers }) => ({
        keys: ['moe_num_experts', 'num_experts'],
        experts: 64,
        perTokenKeys: ['moe_k', 'num_experts_per_tok'],
        perToken: 6,
        dense: layersWhere(layers, (layer) => !isMixture(layer)),
        sharedExperts: f.count('moe_num_shared_experts', 2, 0),
        routing: { bias: true },
      }),
    });
  },
};
