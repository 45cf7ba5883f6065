import type { Config, ConfigFields } from '../config-fields';
import { layersWhere, never } from '../config-window';
import { attentionParameters, parameterShape } from '../parameters';
import type { FamilyTraits, LatentAttention, ModelShape, Recurrence } from '../shape';
import {
  attentionBiasOf,
  biasedRouting,
  type Decoder,
  decoder,
  denseLayersOf,
  EXPERTS,
  type Families,
  type Family,
  type GroupDefaults,
  groupsOf,
  type Mixture,
  mixtureOf,
  ROUTED_EXPERTS,
  withTraits,
} from './decoder';
import { recurrentLayers } from './recurrent';

/** Sizes of DeepSeek-V3. */
export const DEEPSEEK = { qRank: 1536, kvRank: 512, nope: 128, rope: 64, value: 128 };
/** Defaults for missing keys; if `q_lora_rank` is null, queries are projected directly. */
export type LatentDefaults = typeof DEEPSEEK;

function latentOf(f: ConfigFields, d: LatentDefaults): LatentAttention {
  const qRank = f.count('q_lora_rank', f.isNull('q_lora_rank') ? 0 : d.qRank, 0);
  if (qRank === 0) f.take('q_lora_rank', null);
  f.ignore('qk_head_dim head_dim rope_interleave');
  return {
    ...(qRank > 0 && { qRank }),
    kvRank: f.count('kv_lora_rank', d.kvRank),
    nopeHeadSize: f.count('qk_nope_head_dim', d.nope),
    ropeHeadSize: f.count('qk_rope_head_dim', d.rope),
    valueHeadSize: f.count('v_head_dim', d.value),
  };
}

/** A decoder with latent attention in all attention layers. */
function latentDecoder(f: ConfigFields, d: Decoder = {}, latent = DEEPSEEK): ModelShape {
  const latentAttention = latentOf(f, latent);
  const headSize = latentAttention.nopeHeadSize + latentAttention.ropeHeadSize;
  const m = decoder(f, { windowed: never, headSize, ...d });
  // In their files, it is the size of the part with rotary positions.
  f.take('head_dim', null);
  const interleavedRope = f.flag('rope_interleave', true);
  return withTraits(
    { ...m, headSize, kvHeads: m.attentionHeads, latentAttention },
    { ...(interleavedRope && { interleavedRope }), outputBias: f.flag('attention_bias') },
    attentionBiasOf(f),
  );
}

/** Keys of the published files that have no effect here or only one supported value. */
function publishedKeys(f: ConfigFields) {
  f.only({ moe_layer_freq: 1 });
  f.ignore('num_nextn_predict_layers num_mtp_layers');
  // Without this key, transformers assumes one multi-token prediction module.
  f.take('num_nextn_predict_layers', 0);
}

/** Defaults of a family derived from DeepSeek-V3 for missing keys. */
export interface Relative {
  dense: number;
  mixture: Mixture & { experts: number };
  groups: GroupDefaults;
}

/** A family with the layers of DeepSeek-V3. */
export const v3 =
  (given: Relative, d: Decoder = {}, latent = DEEPSEEK): Family =>
  (f) => {
    const m = latentDecoder(f, d, latent);
    publishedKeys(f);
    const experts = f.count(ROUTED_EXPERTS, given.mixture.experts);
    const mixture = mixtureOf(f, m.layers, {
      perToken: 8,
      ...given.mixture,
      keys: ROUTED_EXPERTS,
      dense: denseLayersOf(f, m.layers, given.dense),
      sharedExperts: f.count('n_shared_experts', 1, 0),
      routing: biasedRouting(f, experts, given.groups),
    });
    return withTraits({ ...m, ...mixture }, { routedScaling: f.number('routed_scaling_factor', 2.5) });
  };

/** Groups of DeepSeek-V3's router. */
export const DEEPSEEK_GROUPS: GroupDefaults = { groups: 8, topGroups: 4 };

/** DeepSeek-V3 and R1, Kimi K2: latent attention, sigmoid routing with a bias, groups of experts, one shared expert. */
const deepseekV3 = v3({ dense: 3, mixture: { experts: 256 }, groups: DEEPSEEK_GROUPS });

/** Chunk size of the training kernels of Kimi Delta Attention (fla, `chunk_kda`). */
const CHUNK = 64;

const countIn = (section: Config | undefined, key: string): number | undefined => {
  const value = section?.[key];
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : undefined;
};

/**
 * Kimi Delta Attention (https://arxiv.org/abs/2510.26692): gated DeltaNet with a decay per channel; decay and output gate each use a
 * low-rank matrix. Modules of transformers 5.23, modeling_kimi_linear.py.
 */
function deltaAttention(f: ConfigFields, hidden: number, given: Config | undefined): Recurrence {
  const heads = countIn(given, 'num_heads') ?? f.count('linear_num_heads', 32);
  const size = countIn(given, 'head_dim') ?? f.count('linear_head_dim', 128);
  const kernel = countIn(given, 'short_conv_kernel_size') ?? f.count('linear_conv_kernel_dim', 4);
  const width = heads * size;
  const lowRank = size * (hidden + width);
  const gate = given?.use_full_rank_gate === true ? hidden * width : lowRank;
  return {
    parameters: hidden * (4 * width + heads) + lowRank + gate,
    small: 3 * width * kernel + width + heads + size,
    // Queries, keys and values before and after their convolution, decay, gate and output.
    kept: 9 * width,
    flops: width * (6 * size + 8 * CHUNK),
  };
}

/** Indices of the layers with full attention, counted from 1 in the published files. */
function fullLayers(f: ConfigFields, given: Config | undefined, layers: number): ReadonlySet<number> | undefined {
  const { full_attn_layers: full, kda_layers: delta } = given ?? {};
  if (!Array.isArray(full) || !Array.isArray(delta)) return undefined;
  const all = [...full, ...delta].map(Number).sort((a, b) => a - b);
  if (all.length !== layers || all.some((layer, i) => layer !== i + 1))
    f.refuse('linear_attn_config', `must name each of the ${layers} layers once`, 'correct its two lists', all);
  return new Set(full.map((layer) => Number(layer) - 1));
}

function withRecurrence(f: ConfigFields, m: ModelShape): ModelShape {
  const given = f.section('linear_attn_config');
  const full = fullLayers(f, given, m.layers);
  const isDelta = (layer: number) => (full ? !full.has(layer) : layer === 0 || layer % 4 !== 0);
  const named = f.has('layer_types');
  const layers = named ? recurrentLayers(f, m.layers, isDelta) : layersWhere(m.layers, isDelta);
  const recurrence = { layers, of: deltaAttention(f, m.hiddenSize, given) };
  return withTraits(m, {
    recurrence,
    untrained: ['layers of Kimi Delta Attention', 'latent attention without positions'],
  });
}

/** Parts of Kimi K3: gates of attention, experts that work in a smaller space, and attention over the outputs of earlier layers. */
function partsOfK3(f: ConfigFields, m: ModelShape): Partial<FamilyTraits> {
  f.only({ topk_method: 'noaux_tc' });
  f.ignore('activation_situ_beta activation_situ_linear_beta');
  const { hiddenSize: hidden, attentionHeads: heads, latentAttention } = m;
  const isGated = f.flag('mla_use_output_gate');
  const attendsToLayers = f.optionalCount('attn_res_block_size') !== undefined;
  const expertHidden = f.optionalCount('routed_expert_hidden_size');
  const norm = f.flag('latent_moe_use_norm') ? (expertHidden ?? 0) : 0;
  const full = layersWhere(m.layers, (layer) => !m.family?.recurrence?.layers.includes(layer));
  const ungated = attentionParameters(parameterShape({ ...m, family: { modelType: '' } }));
  const attention = ungated + hidden * heads * (latentAttention?.valueHeadSize ?? 0);
  return {
    ...(isGated && { differing: [{ layers: full, block: { attention } }] }),
    // A norm and a projection to one score, before each sublayer and before the head.
    ...(attendsToLayers && { blockParameters: 4 * hidden, outerParameters: 2 * hidden }),
    ...(expertHidden && { expertHidden, mixtureParameters: 2 * hidden * expertHidden + norm }),
    untrained: [
      ...(isGated ? ['gates of latent attention'] : []),
      ...(attendsToLayers ? ['attention over earlier layers'] : []),
    ],
  };
}

/** Families with multi-head latent attention, most of them with routed and shared experts. */
export const DEEPSEEK_FAMILIES: Families = {
  /** DeepSeek-V2: latent attention, shared experts, softmax scores, optionally limited to groups of experts. */
  deepseek_v2: (f) => {
    const m = latentDecoder(f);
    publishedKeys(f);
    f.only({ scoring_func: 'softmax', mlp_bias: false });
    const keys = ['n_routed_experts', 'num_experts'];
    const experts = f.count(keys, 64);
    const isGrouped = f.text('topk_method', 'greedy') === 'group_limited_greedy';
    const groups = groupsOf(f, experts);
    const mixture = mixtureOf(f, m.layers, {
      keys,
      experts,
      dense: denseLayersOf(f, m.layers, 0),
      sharedExperts: f.count('n_shared_experts', 2, 0),
      // transformers does not normalise the weights for this family, regardless of norm_topk_prob.
      routing: { normalise: false, ...(isGrouped && groups) },
    });
    f.ignore('norm_topk_prob');
    return withTraits(
      { ...m, ...mixture },
      { routedScaling: f.number('routed_scaling_factor', 1), groupScore: 'best' },
    );
  },
  deepseek_v3: deepseekV3,
  // Kimi K2's files specify DeepseekV3ForCausalLM with their own model_type.
  kimi_k2: deepseekV3,
  /** GLM-4 MoE Lite: DeepSeek-V3's layers with other head sizes and one dense layer. */
  glm4_moe_lite: v3(
    { dense: 1, mixture: { experts: 64, perToken: 4 }, groups: {} },
    { epsilon: 1e-5 },
    { qRank: 768, kvRank: 512, nope: 192, rope: 64, value: 256 },
  ),
  /** A.X K1: an additional norm after the experts. */
  axk1: (f) => {
    const m = v3({ dense: 1, mixture: { experts: 192 }, groups: DEEPSEEK_GROUPS })(f);
    return withTraits(m, { mixtureParameters: m.hiddenSize, untrained: ['the norm after experts'] });
  },
  /** Youtu-LLM: dense layers with latent attention and tied embeddings. */
  youtu: (f) => latentDecoder(f, { tied: true }),
  /** MiniCPM3: dense layers with latent attention, multipliers of embeddings, residuals and logits. */
  minicpm3: (f) => {
    const value = Math.floor(f.count('hidden_size') / f.count('num_attention_heads'));
    const latent = { qRank: 768, kvRank: 256, nope: 64, rope: 32, value };
    const m = latentDecoder(f, { tied: true, epsilon: 1e-5 }, latent);
    const mlpBias = f.flag('mlp_bias');
    const residualScale = f.number('scale_depth', 1.4) / Math.sqrt(m.layers);
    const logitScale = f.number('dim_model_base', 256) / m.hiddenSize;
    return withTraits(
      m,
      { residualScale, logitScale, interleavedRope: false, ...(mlpBias && { mlpBias }) },
      { embeddingScale: f.number('scale_emb', 12) },
    );
  },
  /** Kimi Linear and K3: Kimi Delta Attention in three of four layers, latent attention without positions in the others, 256 experts. */
  kimi_linear: (f) => {
    f.only({ moe_layer_freq: 1, moe_router_activation_func: 'sigmoid', mla_use_nope: true });
    f.ignore('num_nextn_predict_layers model_max_length use_grouped_topk');
    const linear = withRecurrence(f, latentDecoder(f, { epsilon: 1e-5, recurrent: true }, { ...DEEPSEEK, qRank: 0 }));
    const m = withTraits(linear, partsOfK3(f, linear));
    const groups = f.count(['num_expert_group', 'n_group'], 1);
    const topGroups = f.count('topk_group', 1);
    const normalise = f.has('moe_renormalize') ? f.flag('moe_renormalize', true) : f.flag('norm_topk_prob', true);
    const mixture = mixtureOf(f, m.layers, {
      keys: EXPERTS,
      experts: 256,
      perTokenKeys: ['num_experts_per_token', 'num_experts_per_tok'],
      perToken: 8,
      dense: denseLayersOf(f, m.layers, 1),
      sharedExperts: f.count(['num_shared_experts', 'n_shared_experts'], 1),
      routing: { score: 'sigmoid', bias: true, normalise, ...(groups > 1 && { groups, topGroups }) },
    });
    // transformers creates a separate embedding and output head for this family, regardless of the file.
    return withTraits(
      { ...m, ...mixture, tiedEmbeddings: false },
      { routedScaling: f.number('routed_scaling_factor', 2.446) },
    );
  },
};
