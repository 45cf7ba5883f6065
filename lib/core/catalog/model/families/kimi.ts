import type { Config, ConfigFields } from '../config-fields';
import { layersWhere } from '../config-window';
import { attentionParameters, parameterShape } from '../parameters';
import type { FamilyTraits, ModelShape, Recurrence } from '../shape';
import { denseLayersOf, EXPERTS, type Family, mixtureOf, withTraits } from './decoder';
import { DEEPSEEK, latentDecoder } from './deepseek';
import { recurrentLayers } from './recurrent';

/** Chunk size of the training kernels (fla, `chunk_kda`). */
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
  f.only('topk_method', 'noaux_tc');
  f.ignore('activation_situ_beta', 'activation_situ_linear_beta');
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

/** Kimi Linear and K3: Kimi Delta Attention in three of four layers, latent attention without positions in the others, 256 experts. */
export const kimiLinear: Family = (f, modelType) => {
  f.only('moe_layer_freq', 1);
  f.only('moe_router_activation_func', 'sigmoid');
  f.only('mla_use_nope', true);
  f.ignore('num_nextn_predict_layers', 'model_max_length', 'use_grouped_topk');
  const linear = withRecurrence(
    f,
    latentDecoder(f, modelType, { epsilon: 1e-5, recurrent: true }, { ...DEEPSEEK, qRank: 0 }),
  );
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
};
