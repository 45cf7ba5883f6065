import { type ConfigFields, keysOf } from '../config-fields';
import { allBut, layersWhere } from '../config-window';
import type { FamilyTraits, ModelShape, Recurrence } from '../shape';
import {
  attentionBiasOf,
  biasedRouting,
  type Decoder,
  decoder,
  type Family,
  mixtureOf,
  ROUTED_EXPERTS,
  withTraits,
} from './decoder';
import { multiplied } from './granite';

const RECURRENT = ['linear_attention', 'mamba'];
const ATTENTION = ['full_attention', 'attention'];

/** Layers with a recurrence, by the names used in `layer_types`. */
export function recurrentLayers(f: ConfigFields, layers: number, otherwise: (layer: number) => boolean): number[] {
  const types = f.perLayer('layer_types', layers) ?? f.perLayer('layers_block_type', layers);
  const unknown = types?.find((type) => ![...RECURRENT, ...ATTENTION].includes(String(type)));
  if (unknown !== undefined)
    f.refuse('layer_types', `must be of ${[...RECURRENT, ...ATTENTION].join(', ')}`, 'correct the list', unknown);
  return layersWhere(layers, (layer) => (types ? RECURRENT.includes(String(types[layer])) : otherwise(layer)));
}

/** Chunk size of the training kernels (fla, `chunk_gated_delta_rule`). */
const DELTA_CHUNK = 64;

/** Sizes for missing keys. */
interface DeltaDefaults {
  keyHeads: number;
  valueHeads: number;
  keySize: (keyHeads: number) => number;
  valueSize: (keySize: number) => number;
}

const QWEN_DELTA: DeltaDefaults = { keyHeads: 16, valueHeads: 32, keySize: () => 128, valueSize: () => 128 };

/**
 * Gated DeltaNet (https://arxiv.org/abs/2412.06464): each token corrects, updates and reads a state of key size x value size per head, in
 * chunks of matrix products.
 */
function deltaNet(f: ConfigFields, hidden: number, d: DeltaDefaults = QWEN_DELTA): Recurrence {
  const keyHeads = f.count('linear_num_key_heads', d.keyHeads);
  const valueHeads = f.count('linear_num_value_heads', d.valueHeads);
  const keySize = f.count('linear_key_head_dim', d.keySize(keyHeads));
  const valueSize = f.count('linear_value_head_dim', d.valueSize(keySize));
  const [keys, values] = [keyHeads * keySize, valueHeads * valueSize];
  return {
    parameters: hidden * (2 * keys + 3 * values + 2 * valueHeads),
    small: (2 * keys + values) * f.count('linear_conv_kernel_dim', 4) + 2 * valueHeads + valueSize,
    kept: 4 * keys + 5 * values,
    flops: values * (6 * keySize + 8 * DELTA_CHUNK),
  };
}

/** Family-specific key names and defaults. */
interface MambaKeys {
  heads: string;
  headSize: string;
  groups: string;
  state: string;
  kernel: string;
  convolutionBias: string;
  bias: string;
  chunk: string;
  stateSize: number;
  groupCount: number;
  chunkSize: number;
  /** Flag for a separate norm in the recurrence. @default - it has one */
  norm?: string;
}

/**
 * Mamba-2 (https://arxiv.org/abs/2405.21060, sections 6 and 7): a state of state size x head size per head, in chunks of matrix products.
 */
export function mamba2(f: ConfigFields, hidden: number, k: MambaKeys): Recurrence {
  const heads = f.count(k.heads, 128);
  const inner = heads * f.count(k.headSize, 64);
  const state = f.count(k.state, k.stateSize);
  const convolved = inner + 2 * f.count(k.groups, k.groupCount) * state;
  const projected = inner + convolved + heads;
  const biases = f.flag(k.bias) ? projected + hidden : 0;
  const kernel = f.count(k.kernel, 4) + (f.flag(k.convolutionBias, true) ? 1 : 0);
  const norm = k.norm === undefined || f.flag(k.norm) ? inner : 0;
  return {
    parameters: hidden * (projected + inner),
    small: convolved * kernel + 3 * heads + norm + biases,
    kept: 3 * inner + 2 * convolved,
    flops: inner * (4 * state + 2 * f.count(k.chunk, k.chunkSize)),
  };
}

const DELTA = 'layers of gated DeltaNet (linear attention)';
const DELTA_UNTRAINED = [DELTA, 'gated attention'];
/** Features of Mamba-2 that the built-in trainer does not implement. */
export const MAMBA_UNTRAINED = ['Mamba-2 layers'];

/**
 * Keys of the published files that no module reads: prediction modules, whose weights are in the files but not in the model, and the
 * precision in which servers keep states.
 */
const QWEN_UNREAD = keysOf('mtp_num_hidden_layers mtp_use_dedicated_embeddings mamba_ssm_dtype');

/** Attention with an output gate in every fourth layer, gated DeltaNet in the others. */
function qwenRecurrent(f: ConfigFields, modelType: string, d: Decoder = {}): ModelShape {
  f.ignore(...QWEN_UNREAD);
  f.only('attn_output_gate', true);
  // The gate of the recurrence, under the second name of SiLU.
  f.only('output_gate_type', 'swish');
  const interval = f.count('full_attention_interval', 4);
  const m = decoder(f, modelType, {
    headSize: 256,
    kvHeads: 2,
    recurrent: true,
    norm: 'rms-offset',
    ...d,
  });
  const layers = recurrentLayers(f, m.layers, allBut(interval));
  const recurrence = { layers, of: deltaNet(f, m.hiddenSize) };
  const traits = { recurrence, gatedAttention: true, untrained: DELTA_UNTRAINED };
  return { ...withTraits(m, traits, attentionBiasOf(f)), qkNorm: true };
}

/** OLMo Hybrid: OLMo 3's attention in every fourth layer, gated DeltaNet in the others. */
export const olmoHybrid: Family = (f, modelType) => {
  f.ignore(
    ...keysOf(
      'linear_a_log_min linear_a_log_max linear_dt_min linear_dt_max linear_dt_init_floor linear_allow_neg_eigval',
    ),
  );
  const m = decoder(f, modelType, { recurrent: true });
  const layers = recurrentLayers(f, m.layers, (layer) => layer % 4 !== 3 && !(m.layers < 4 && layer === m.layers - 1));
  const of = deltaNet(f, m.hiddenSize, {
    keyHeads: m.attentionHeads,
    valueHeads: m.attentionHeads,
    keySize: (heads) => Math.floor((0.75 * m.hiddenSize) / heads),
    valueSize: (keys) => 2 * keys,
  });
  const traits: Partial<FamilyTraits> = { recurrence: { layers, of }, qkNorm: 'whole', untrained: [DELTA] };
  return { ...withTraits(m, traits, attentionBiasOf(f)), qkNorm: true };
};

/** Experts in every layer, with one shared expert and its gate. */
function withExperts(f: ConfigFields, m: ModelShape, experts: number, perToken: number): ModelShape {
  const step = f.count('decoder_sparse_step', 1);
  const only = f.layerNumbers('mlp_only_layers', m.layers) ?? [];
  const dense = layersWhere(m.layers, (layer) => only.includes(layer) || (layer + 1) % step !== 0);
  const routing = { normalise: f.flag('norm_topk_prob', true) };
  const mixture = mixtureOf(f, m.layers, { experts, perToken, dense, routing, sharedExperts: 1 });
  const sharedFfnHiddenSize = f.count('shared_expert_intermediate_size', 512);
  return withTraits(m, { sharedFfnHiddenSize, sharedExpertGate: true }, mixture);
}

/** Qwen 3 Next: gated DeltaNet in three of four layers, 512 experts. */
export const qwen3Next: Family = (f, modelType) => withExperts(f, qwenRecurrent(f, modelType), 512, 10);

/** Text model of Qwen 3.5. */
export const qwen35: Family = (f, modelType) => {
  f.isEmpty('mlp_only_layers');
  return qwenRecurrent(f, modelType, { kvHeads: 4 });
};

/** Text model of Qwen 3.5 with experts in every layer. */
export const qwen35Moe: Family = (f, modelType) =>
  withExperts(f, qwenRecurrent(f, modelType, { ffnKey: 'moe_intermediate_size' }), 256, 8);

/** Mamba-2 with the key names of Granite 4 and Falcon-H1. */
export const HYBRID_MAMBA: MambaKeys = {
  heads: 'mamba_n_heads',
  headSize: 'mamba_d_head',
  groups: 'mamba_n_groups',
  state: 'mamba_d_state',
  kernel: 'mamba_d_conv',
  convolutionBias: 'mamba_conv_bias',
  bias: 'mamba_proj_bias',
  chunk: 'mamba_chunk_size',
  stateSize: 256,
  groupCount: 1,
  chunkSize: 256,
};

/** Granite 4: Mamba-2 in most layers, a shared feed-forward block, and optionally experts beside it. */
export const graniteHybrid: Family = (f, modelType) => {
  f.ignore('mamba_expand', 'position_embedding_type', 'time_step_limit', 'normalization_function', 'init_method');
  const m = multiplied(f, modelType, { recurrent: true });
  const recurrence = {
    layers: recurrentLayers(f, m.layers, () => true),
    of: mamba2(f, m.hiddenSize, HYBRID_MAMBA),
  };
  const mixed = withTraits(m, { recurrence, untrained: MAMBA_UNTRAINED });
  if (f.count('num_local_experts', 8, 0) === 0) {
    f.ignore('num_experts_per_tok');
    return { ...mixed, ffnHiddenSize: f.count('shared_intermediate_size', 1024) };
  }
  const shared = f.count('shared_intermediate_size', 1024, 0);
  const mixture = mixtureOf(f, m.layers, {
    sizeKey: 'intermediate_size',
    keys: ['num_local_experts'],
    experts: 8,
    perToken: 2,
    sharedExperts: 1,
  });
  return withTraits(mixed, { sharedFfnHiddenSize: shared }, mixture);
};

const NEMOTRON_MAMBA: MambaKeys = {
  heads: 'mamba_num_heads',
  headSize: 'mamba_head_dim',
  groups: 'n_groups',
  state: 'ssm_state_size',
  kernel: 'conv_kernel',
  convolutionBias: 'use_conv_bias',
  bias: 'use_bias',
  chunk: 'chunk_size',
  stateSize: 128,
  groupCount: 8,
  chunkSize: 128,
};

type NemotronLayer = 'recurrent' | 'attention' | 'dense' | 'experts';
const NEMOTRON_TYPES: Readonly<Record<string, NemotronLayer>> = {
  M: 'recurrent',
  mamba: 'recurrent',
  linear_attention: 'recurrent',
  '*': 'attention',
  attention: 'attention',
  full_attention: 'attention',
  '-': 'dense',
  mlp: 'dense',
  E: 'experts',
  moe: 'experts',
};

/** The type of each layer, from the list or from the letters of `hybrid_override_pattern`. */
function nemotronLayers(f: ConfigFields): NemotronLayer[] {
  const pattern = f.text('hybrid_override_pattern', '');
  const given = f.list('layers_block_type') ?? (pattern ? [...pattern] : undefined);
  const named = given ?? ['mamba', 'moe', 'attention', 'mlp'];
  const key = f.has('layers_block_type') ? 'layers_block_type' : 'hybrid_override_pattern';
  return named.map((name) => {
    const type = NEMOTRON_TYPES[String(name)];
    if (!type) f.refuse(key, `must be of ${Object.keys(NEMOTRON_TYPES).join(', ')}`, 'correct it', name);
    return type ?? 'dense';
  });
}

/** Nemotron-H and Nemotron 3: each layer is either Mamba-2, attention, a feed-forward block or experts. */
export const nemotronH: Family = (f, modelType) => {
  const types = nemotronLayers(f);
  if (f.count('num_hidden_layers', types.length) !== types.length)
    f.refuse('num_hidden_layers', `must be the ${types.length} layers that the file lists`, 'correct one of the two');
  const where = (type: NemotronLayer) => layersWhere(types.length, (layer) => types[layer] === type);
  f.only('mlp_bias', false);
  f.ignore(...NEMOTRON_IGNORED);
  const m = decoder(f, modelType, {
    headSize: 128,
    kvHeads: 8,
    gated: false,
    activationKey: 'mlp_hidden_act',
    activation: 'relu2',
    epsilonKey: ['layer_norm_epsilon', 'norm_eps'],
    epsilon: 1e-5,
    layers: types.length,
    recurrent: true,
  });
  f.only('attention_head_dim', m.headSize);
  const recurrence = { layers: where('recurrent'), of: mamba2(f, m.hiddenSize, NEMOTRON_MAMBA) };
  const alone = {
    mixing: [...where('recurrent'), ...where('attention')],
    feeding: [...where('dense'), ...where('experts')],
  };
  const traits = {
    recurrence,
    alone,
    normsPerBlock: 1,
    untrained: [...MAMBA_UNTRAINED, 'layers of attention or a feed-forward block alone'],
  };
  // transformers creates a separate embedding and output head, and attention without biases, regardless of the file.
  const mixed = withTraits(m, traits, { tiedEmbeddings: false });
  f.ignore('moe_latent_size');
  return where('experts').length === 0 ? mixed : nemotronExperts(f, mixed, types);
};

/** Adds the experts of the layers that have them. */
function nemotronExperts(f: ConfigFields, model: ModelShape, types: readonly NemotronLayer[]): ModelShape {
  const mixture = mixtureOf(f, types.length, {
    keys: ROUTED_EXPERTS,
    experts: 8,
    perToken: 2,
    dense: layersWhere(types.length, (layer) => types[layer] !== 'experts'),
    sharedExperts: f.count('n_shared_experts', 1),
  });
  const sharedFfnHiddenSize = f.count('moe_shared_expert_intermediate_size', 7688);
  const routing = biasedRouting(f, f.count(ROUTED_EXPERTS, 8));
  f.number('routed_scaling_factor', 1);
  const expertHidden = f.optionalCount('moe_latent_size');
  // Projections into the space of the experts and out of it.
  const latent = expertHidden && { expertHidden, mixtureParameters: 2 * model.hiddenSize * expertHidden };
  return withTraits(model, { sharedFfnHiddenSize, ...latent }, { ...mixture, routing });
}

/** Numerical settings and initialisation of Mamba-2, and keys that are present even in models without the corresponding part. */
const NEMOTRON_IGNORED = keysOf(
  `attention_bias expand mamba_proj_bias use_mamba_kernels mamba_hidden_act time_step_min time_step_max time_step_limit time_step_floor
  mamba_ssm_cache_dtype moe_shared_expert_overlap mtp_layers_block_type mtp_hybrid_override_pattern num_nextn_predict_layers residual_in_fp32 rescale_prenorm_residual num_logits_to_keep
  num_hidden_layers rms_norm_eps time_step_rank n_routed_experts n_shared_experts moe_intermediate_size moe_shared_expert_intermediate_size num_experts_per_tok
  routed_scaling_factor n_group topk_group norm_topk_prob sliding_window`,
);
