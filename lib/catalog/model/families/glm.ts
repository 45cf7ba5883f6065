import type { ConfigFields } from '../config-fields';
import { allBut, layersWhere, never } from '../config-window';
import { hasWindow } from '../parameters';
import type { ModelShape, Routing } from '../shape';
import {
  attentionBiasOf,
  biasedRouting,
  type Decoder,
  decoder,
  denseLayersOf,
  expertsOf,
  type Family,
  mixtureOf,
  withTraits,
} from './decoder';

/** GLM and other mixtures whose routing follows DeepSeek-V3, with grouped-query attention. */

const half = (m: ModelShape): ModelShape => ({ ...m, partialRotary: m.partialRotary ?? 0.5 });

const glmOf = (f: ConfigFields, modelType: string): ModelShape => {
  const m = half(decoder(f, modelType, { headSize: 128, epsilon: 1.5625e-7, kvHeads: 2, windowed: never }));
  const attentionBias = f.flag('attention_bias', true);
  return withTraits(m, { interleavedRope: true, outputBias: false }, { attentionBias });
};

/** GLM: Llama with rotary positions on half of each head. */
export const glm: Family = glmOf;
/** GLM-4 0414: GLM with sandwich norms. */
export const glm4: Family = (f, modelType) => ({ ...glmOf(f, modelType), normPlacement: 'sandwich' });

interface Grouped extends Decoder {
  dense: number;
  experts?: number;
  perToken?: number;
  scaling?: string;
}

/** Grouped-query attention, norms of queries and keys, experts with a biased sigmoid router and shared ones. */
function routed(f: ConfigFields, modelType: string, d: Grouped): ModelShape {
  const m = decoder(f, modelType, { windowed: never, ...d });
  const experts = expertsOf(f, d.experts);
  const mixture = mixtureOf(f, m.layers, {
    experts,
    perToken: d.perToken,
    dense: denseLayersOf(f, m.layers, d.dense),
    sharedExperts: f.count(['n_shared_experts', 'num_shared_experts'], 1, 0),
    routing: biasedRouting(f, experts),
  });
  f.ignore('num_nextn_predict_layers', 'num_mtp_layers');
  const routedScaling = f.number(d.scaling ?? 'routed_scaling_factor', 1);
  return withTraits({ ...m, ...mixture, ...attentionBiasOf(f) }, { routedScaling });
}

/** GLM-4.5 and 4.6: sigmoid routing with a bias, shared experts, dense layers first. */
export const glm4Moe: Family = (f, modelType) => {
  const m = half(routed(f, modelType, { dense: 1, epsilon: 1e-5, experts: 128, perToken: 8 }));
  return withTraits(m, { outputBias: false }, { qkNorm: f.flag('use_qk_norm') });
};

/** Solar Open: GLM-4.5's routing in every layer, without QK norm. */
export const solarOpen: Family = (f, modelType) => {
  f.only('use_qk_norm', false);
  f.ignore('intermediate_size');
  const m = routed(f, modelType, {
    dense: 0,
    theta: 1_000_000,
    epsilon: 1e-5,
    headSize: 128,
    experts: 128,
    perToken: 8,
    ffnKey: 'moe_intermediate_size',
  });
  return withTraits(m, { outputBias: false });
};

/** dots.llm1: QK norm, sigmoid routing with a bias, windows from `max_window_layers` on. */
export const dots1: Family = (f, modelType) => {
  const first = f.count('max_window_layers', 62, 0);
  return { ...routed(f, modelType, { dense: 0, windowed: (layer) => layer >= first, window: 0 }), qkNorm: true };
};

/** EXAONE 4: QK norm, norms after attention and MLP; where layers have a window, the others have no rotary positions. */
export const exaone4: Family = (f, modelType) => {
  const m = decoder(f, modelType, { epsilon: 1e-5, headSize: null, windowed: windowed(f) });
  return { ...m, ...unrotatedBesideWindows(m), qkNorm: true, normPlacement: 'post' };
};

/** Where some layers have a window, the others have no rotary positions. */
function unrotatedBesideWindows(m: ModelShape): Pick<ModelShape, 'unrotatedLayers'> {
  if (!m.slidingWindow) return {};
  const whole = layersWhere(m.layers, (layer) => !hasWindow(m.slidingWindow, layer));
  return whole.length > 0 ? { unrotatedLayers: whole } : {};
}

/** A period as a number, or as letters: LLLG. */
const windowed = (f: ConfigFields): ((layer: number) => boolean) => {
  f.ignore('sliding_window_pattern');
  return f.has('sliding_window_pattern') || f.has('sliding_window') ? allBut(4) : never;
};

/** EXAONE MoE: EXAONE 4's windows and QK norm, norms before attention and MLP, sigmoid routing with a bias. */
export const exaoneMoe: Family = (f, modelType) => {
  const m = routed(f, modelType, { dense: 1, epsilon: 1e-5, experts: 64, perToken: 8, windowed: windowed(f) });
  return { ...m, ...unrotatedBesideWindows(m), qkNorm: true };
};

/** Hunyuan V3: QK norm, sigmoid routing with a bias, a shared expert. */
export const hyV3: Family = (f, modelType) => {
  f.only('mlp_bias', false);
  f.ignore('enable_moe_fp32_combine', 'enable_attention_fp32_softmax', 'enable_lm_head_fp32');
  const m = routed(f, modelType, {
    dense: 1,
    epsilon: 1e-5,
    theta: 11_158_840,
    headSize: 128,
    scaling: 'router_scaling_factor',
  });
  return { ...m, qkNorm: true };
};

const softmax = (f: ConfigFields): Routing => ({ normalise: f.flag('norm_topk_prob', true) });

/** Mellum: QK norm, softmax routing, no shared expert. */
export const mellum: Family = (f, modelType) => {
  const m = decoder(f, modelType, { headSize: 128, windowed: never });
  f.ignore('num_nextn_predict_layers', 'mtp_layer_types', 'mtp_mlp_layer_types');
  const mixture = mixtureOf(f, m.layers, { routing: softmax(f), dense: denseLayersOf(f, m.layers, 0) });
  return { ...m, ...mixture, qkNorm: true, ...attentionBiasOf(f) };
};

/** Hunyuan: the shared expert of the mixture is as large as a dense block. */
const hunyuanOf = (f: ConfigFields, modelType: string): ModelShape => {
  const m = decoder(f, modelType, { epsilon: 1e-5, windowed: never });
  f.ignore('use_qk_norm', 'use_cla', 'cla_share_factor', 'org_vocab_size', 'attention_head_dim');
  const untrained = ['norms of queries and keys behind rotary positions'];
  return withTraits({ ...m, qkNorm: true }, { untrained }, attentionBiasOf(f));
};

/** Hunyuan dense V1: Llama with norms of queries and keys behind their rotary positions. */
export const hunyuan: Family = hunyuanOf;

/** Hunyuan MoE V1: QK norm, one shared expert in each layer. */
export const hunyuanMoe: Family = (f, modelType) => {
  const m = hunyuanOf(f, modelType);
  const mixture = mixtureOf(f, m.layers, { sizeKey: 'intermediate_size', experts: 1, perToken: 1, sharedExperts: 1 });
  return { ...m, ...mixture };
};

/** ERNIE 4.5 dense: Llama with one flag for all biases. */
export const ernie45: Family = (f, modelType) => {
  const m = decoder(f, modelType, { tied: true, theta: 500_000, epsilon: 1e-5, windowed: never });
  const bias = f.flag('use_bias');
  return withTraits(m, { interleavedRope: true, ...(bias && { mlpBias: true }) }, bias ? { attentionBias: true } : {});
};

/** ERNIE 4.5 MoE: softmax scores with a bias for balance, shared experts, dense layers first. */
export const ernie45Moe: Family = (f, modelType) => {
  f.only('use_bias', false);
  const m = ernie45(f, modelType);
  const first = f.count('moe_layer_start_index', 1, 0);
  const last = f.number('moe_layer_end_index', -1);
  const interval = f.count('moe_layer_interval', 1);
  const end = last < 0 ? m.layers - 1 : last;
  const isMixture = (layer: number) => (layer + 1) % interval === 0 && layer >= first && layer <= end;
  const dense = layersWhere(m.layers, (layer) => !isMixture(layer));
  const sharedExperts = f.count('moe_num_shared_experts', 2, 0);
  const mixture = mixtureOf(f, m.layers, { experts: 64, perToken: 6, dense, sharedExperts, routing: { bias: true } });
  return withTraits({ ...m, ...mixture }, { routingBiasIsParameter: true });
};
