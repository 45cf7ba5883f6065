import type { ConfigFields } from '../config-fields';
import { layersWhere } from '../config-window';
import { attentionParameters, parameterShape } from '../parameters';
import type { DifferingLayers, ModelShape } from '../shape';
import {
  type Decoder,
  decoder,
  type Families,
  type Family,
  LOCAL_EXPERTS,
  leading,
  mixtureOf,
  ROUTED_EXPERTS,
  withTraits,
} from './decoder';
import { DEEPSEEK, DEEPSEEK_GROUPS, type LatentDefaults, type Relative, v3 } from './deepseek';

/** The heads that score positions (DeepSeek Sparse Attention): parameters, and elements that are multiplied with every position. */
function indexer(f: ConfigFields, hidden: number, queryRank: number, headCount: number) {
  const size = f.count('index_head_dim', 128);
  const heads = f.count('index_n_heads', headCount);
  return { matrices: queryRank * heads * size + hidden * (size + heads), small: 2 * size, scored: heads * size };
}

const UNTRAINED = ['sparse attention with an indexer'];

/** DeepSeek-V3's layers, in which a query attends to the positions that an indexer selects. */
const selective =
  (
    given: Relative & { indexHeads: number },
    d: Decoder,
    latent: LatentDefaults,
    runsIndexer: (f: ConfigFields, layers: number) => (layer: number) => boolean,
  ): Family =>
  (f) => {
    f.ignore('mlp_bias indexer_rope_interleave index_share_for_mtp_iteration moe_router_dtype');
    const m = v3(given, { recurrent: true, ...d }, latent)(f);
    for (const type of f.perLayer('layer_types', m.layers) ?? [])
      if (type !== 'indexed_attention')
        f.refuse('layer_types', 'must only have indexed_attention', 'use model.architecture', type);
    if (!m.latentAttention?.qRank) f.refuse('q_lora_rank', 'must be given: the indexer reads it', 'add it');
    const { matrices, small, scored } = indexer(f, m.hiddenSize, m.latentAttention?.qRank ?? 0, given.indexHeads);
    const attention = attentionParameters(parameterShape(m));
    const window = f.count('index_topk', 2048);
    const runs = runsIndexer(f, m.layers);
    const differing: DifferingLayers[] = [
      { layers: layersWhere(m.layers, runs), block: { window, scored, attention: attention + matrices }, small },
      { layers: layersWhere(m.layers, (layer) => !runs(layer)), block: { window, attention } },
    ];
    return withTraits(m, { differing, untrained: UNTRAINED });
  };

/** Layers of GLM 5 that run the indexer; the others take the selection of the last one that does. */
function fullIndexers(f: ConfigFields, layers: number): (layer: number) => boolean {
  const types = f.perLayerOf('indexer_types', layers, ['full', 'shared']);
  const pattern = f.letters('index_topk_pattern', /^[FS]*$/);
  const every = f.count('index_topk_freq', 1, 0) || 1;
  const offset = f.count('index_skip_topk_offset', 2, 0);
  if (pattern !== undefined && pattern.length !== layers && !types)
    f.refuse('index_topk_pattern', `must have one letter for each of the ${layers} layers`, 'correct it');
  return (layer) =>
    types ? types[layer] === 'full' : pattern ? pattern[layer] === 'F' : Math.max(layer - offset + 1, 0) % every === 0;
}

/** Sizes of the indexer of MiniMax-M3 by the names of transformers, with those in the section of the published file, and their defaults. */
const M3_SIZES = {
  index_n_heads: ['sparse_num_index_heads', 4],
  index_head_dim: ['sparse_index_dim', 128],
  index_block_size: ['sparse_block_size', 128],
  index_topk_blocks: ['sparse_topk_blocks', 16],
  index_local_blocks: ['sparse_local_block', 1],
} as const;

/** Layers of MiniMax-M3 whose queries attend to the blocks of positions that an indexer selects. */
function blockSparse(f: ConfigFields, m: ModelShape): DifferingLayers {
  const given = f.section('sparse_attention_config') ?? {};
  const sizeOf = (key: keyof typeof M3_SIZES): number => {
    const [theirs, otherwise] = M3_SIZES[key];
    const named = f.count(key, otherwise);
    return typeof given[theirs] === 'number' ? given[theirs] : named;
  };
  const types = f.perLayerOf('layer_types', m.layers, ['full_attention', 'minimax_m3_sparse']);
  const marks = Array.isArray(given.sparse_attention_freq) ? given.sparse_attention_freq : [];
  const [heads, size] = [sizeOf('index_n_heads'), sizeOf('index_head_dim')];
  return {
    layers: layersWhere(m.layers, (layer) => (types ? types[layer] === 'minimax_m3_sparse' : Boolean(marks[layer]))),
    block: {
      window: (sizeOf('index_topk_blocks') + sizeOf('index_local_blocks')) * sizeOf('index_block_size'),
      scored: heads * size,
      attention: attentionParameters(parameterShape(m)) + m.hiddenSize * (heads + 1) * size,
    },
    small: 2 * size,
  };
}

/** Layers of MiniMax-M3 without experts: from `mlp_layer_types`, or from the list of zeros and ones of the published file. */
function m3Dense(f: ConfigFields, layers: number): number | number[] {
  f.ignore('first_k_dense_replace');
  const types = f.perLayerOf('mlp_layer_types', layers, ['dense', 'sparse']);
  const marks = f.perLayerOf('moe_layer_freq', layers, [0, 1]);
  return leading(layersWhere(layers, (layer) => (types ? types[layer] === 'dense' : marks?.[layer] === 0)));
}

/** MiniMax-M3 text: block-sparse attention and experts after the first layers, a clamped activation, norms around one. */
const minimaxM3: Family = (f) => {
  f.only({ use_gemma_norm: true, use_qk_norm: true, use_routing_bias: true, qk_norm_type: 'per_head' });
  f.only({ scoring_func: 'sigmoid', attention_output_gate: false, swiglu_alpha: 1.702, swiglu_limit: 7 });
  f.ignore('num_mtp_modules num_nextn_predict_layers');
  const d: Decoder = { theta: 5_000_000, recurrent: true, kvHeads: 4, headSize: 128, norm: 'rms-offset' };
  const m = decoder(f, d);
  const partialRotary = m.partialRotary ?? f.count('rotary_dim', 64) / (m.headSize ?? 128);
  f.ignore('rotary_dim');
  f.only({ moe_intermediate_size: m.ffnHiddenSize });
  const mixture = mixtureOf(f, m.layers, {
    sizeKey: 'intermediate_size',
    keys: LOCAL_EXPERTS,
    experts: 128,
    perToken: 4,
    dense: m3Dense(f, m.layers),
    sharedExperts: f.count('n_shared_experts', 1),
    routing: { score: 'sigmoid', bias: true, normalise: true },
  });
  const sizes = { expertFfnHiddenSize: m.ffnHiddenSize, ffnHiddenSize: f.count('dense_intermediate_size', 12_288) };
  const traits = {
    activation: 'clamped-swiglu' as const,
    sharedFfnHiddenSize: f.count('shared_intermediate_size', 3072, 0),
    routedScaling: f.number('routed_scaling_factor', 2),
    differing: [blockSparse(f, m)],
    untrained: UNTRAINED,
  };
  return withTraits({ ...m, ...mixture, ...sizes, partialRotary, qkNorm: true }, traits);
};

type V4Layer = 'sliding_attention' | 'compressed_sparse_attention' | 'heavily_compressed_attention';
const V4_RATES: Readonly<Record<number, V4Layer>> = {
  0: 'sliding_attention',
  4: 'compressed_sparse_attention',
  128: 'heavily_compressed_attention',
};

/** The type of each layer: from `layer_types`, else from the rates of `compress_ratios`, which may have entries of prediction modules. */
function v4Layers(f: ConfigFields, layers: number): V4Layer[] {
  const [types, rates] = [f.perLayer('layer_types', layers), f.list('compress_ratios')];
  const usual = (layer: number): V4Layer => V4_RATES[layer >= 2 && layer % 2 === 1 ? 4 : 128] as V4Layer;
  return [...Array(layers).keys()].map((layer) => {
    const type = types ? types[layer] : rates ? V4_RATES[Number(rates[layer])] : usual(layer);
    const known = Object.values(V4_RATES).find((name) => name === type);
    if (!known)
      f.refuse(
        types ? 'layer_types' : 'compress_ratios',
        `must be of ${(types ? Object.values(V4_RATES) : Object.keys(V4_RATES)).join(', ')}`,
        'correct the list',
        types ? type : rates?.[layer],
      );
    return known ?? 'sliding_attention';
  });
}

function v4Differing(f: ConfigFields, m: ModelShape, queryRank: number): DifferingLayers[] {
  const { hiddenSize: hidden, attentionHeads: heads } = m;
  const size = m.headSize ?? 512;
  const outRank = f.count('o_lora_rank', 1024);
  const attention =
    queryRank * (hidden + heads * size) + hidden * size + outRank * (heads * size + f.count('o_groups', 8) * hidden);
  const window = f.count('sliding_window', 128);
  const rates = f.section('compress_rates') ?? {};
  const rateOf = (type: V4Layer, legacy: string, otherwise: number) =>
    typeof rates[type] === 'number' ? Number(rates[type]) : f.count(legacy, otherwise);
  const sparse = rateOf('compressed_sparse_attention', 'compress_rate_csa', 4);
  const heavy = rateOf('heavily_compressed_attention', 'compress_rate_hca', 128);
  const [indexHeads, indexSize] = [f.count('index_n_heads', 64), f.count('index_head_dim', 128)];
  const selected = f.count('index_topk', 512);
  const types = v4Layers(f, m.layers);
  const where = (type: V4Layer) => layersWhere(m.layers, (layer) => types[layer] === type);
  const norms = queryRank + size;
  // Keys and values are compressed by a weighted mean of `rate` positions; the sparse kind has two overlapping means, and its indexer too.
  const index = 4 * hidden * indexSize + queryRank * indexHeads * indexSize + hidden * indexHeads;
  return [
    { layers: where('sliding_attention'), block: { attention, window }, small: norms },
    {
      layers: where('compressed_sparse_attention'),
      block: {
        attention: attention + 4 * hidden * size + index,
        window: window + selected,
        scored: (indexHeads * indexSize) / sparse,
      },
      small: norms + (2 * sparse + 1) * (size + indexSize),
    },
    {
      layers: where('heavily_compressed_attention'),
      // All compressed positions are attended to, with the two products of attention.
      block: { attention: attention + 2 * hidden * size, window, scored: (2 * heads * size) / heavy },
      small: norms + (heavy + 1) * size,
    },
  ];
}

/** Families whose attention selects the positions that a query attends to. */
export const SPARSE_FAMILIES: Families = {
  /** DeepSeek-V3.2: DeepSeek-V3 with an indexer in every layer. */
  deepseek_v32: selective(
    { dense: 3, mixture: { experts: 256 }, groups: DEEPSEEK_GROUPS, indexHeads: 64 },
    {},
    DEEPSEEK,
    () => () => true,
  ),
  /** GLM 5: DeepSeek-V3.2's layers with other sizes; some take the selection of an earlier layer. */
  glm_moe_dsa: selective(
    { dense: 3, mixture: { experts: 256 }, groups: {}, indexHeads: 32 },
    { epsilon: 1e-5 },
    { qRank: 2048, kvRank: 512, nope: 192, rope: 64, value: 256 },
    fullIndexers,
  ),
  minimax_m3: minimaxM3,
  minimax_m3_vl_text: minimaxM3,
  /**
   * DeepSeek-V4: one key and value head, compressed and selected positions beyond a window, grouped output projections, and several residual
   * streams. Modules of transformers 5.23, modeling_deepseek_v4.py.
   */
  deepseek_v4: (f) => {
    f.only({ mlp_bias: false });
    // No module reads the first two.
    f.ignore('attention_bias n_shared_experts');
    f.ignore(
      `scoring_func topk_method num_hash_layers mlp_layer_types num_nextn_predict_layers swiglu_limit expert_dtype
    compress_rope_theta qk_rope_head_dim hc_eps hc_sinkhorn_iters`,
    );
    const d = { recurrent: true, ownPositions: true, ffnKey: 'moe_intermediate_size', kvHeads: 1, headSize: 512 };
    const m = decoder(f, d);
    // The second name of the size.
    f.only({ intermediate_size: m.ffnHiddenSize });
    const experts = { keys: ROUTED_EXPERTS, experts: 256, perToken: 6, sharedExperts: 1 };
    const routing = { score: 'sigmoid', bias: true, normalise: f.flag('norm_topk_prob', true) } as const;
    const mixture = mixtureOf(f, m.layers, { ...experts, routing });
    const streams = f.count('hc_mult', 4);
    // Of each sublayer: a projection of all streams to the weights of their mixtures, biases, three scales.
    const mixing = (2 + streams) * streams * (streams * m.hiddenSize + 1) + 3;
    const traits = {
      streams,
      differing: v4Differing(f, m, f.count('q_lora_rank', 1024)),
      blockParameters: 2 * mixing,
      outerParameters: streams * (streams * m.hiddenSize + 1) + 1,
      routedScaling: f.number('routed_scaling_factor', 1.5),
      untrained: ['compressed and sparse attention', 'several residual streams', 'routing of DeepSeek-V4'],
    };
    return withTraits({ ...m, ...mixture, attentionSinks: true }, traits);
  },
};
