import type { ConfigFields } from '../config-fields';
import { always, layersWhere, never } from '../config-window';
import { hasWindow } from '../parameters';
import type { DifferingLayers, ModelShape, Recurrence } from '../shape';
import {
  biasedRouting,
  decoder,
  denseLayersOf,
  EXPERTS,
  type Families,
  LOCAL_EXPERTS,
  leading,
  type Mixture,
  mixtureOf,
  ROUTED_EXPERTS,
  withTraits,
} from './decoder';
import { HYBRID_MAMBA, MAMBA_UNTRAINED, mamba2, recurrentLayers } from './recurrent';

/** A gated short convolution (https://arxiv.org/abs/2511.23404, section 2): two products around a convolution of each channel. */
function shortConvolution(f: ConfigFields, hidden: number): Recurrence {
  const kernel = f.count('conv_L_cache', 3);
  const biases = f.flag('conv_bias') ? 5 * hidden : 0;
  return { parameters: 4 * hidden ** 2, small: hidden * kernel + biases, kept: 6 * hidden, flops: 2 * kernel * hidden };
}

/** Layers with a convolution, by `layer_types` or as all but those of `full_attn_idxs`. */
function convolutions(f: ConfigFields, layers: number): number[] {
  const types = f.perLayerOf('layer_types', layers, ['conv', 'full_attention']);
  const full = f.layerNumbers('full_attn_idxs', layers);
  return layersWhere(layers, (layer) =>
    types ? types[layer] === 'conv' : full !== undefined && !full.includes(layer),
  );
}

/** Keys of LFM2's files that repeat others or that no module reads. */
const LFM_UNREAD = `block_dim block_mlp_init_scale block_norm_eps block_out_init_scale block_use_swiglu block_use_xavier_init conv_dim conv_dim_out
  conv_use_xavier_init num_heads use_pos_enc tie_embedding`;

function lfm(f: ConfigFields): ModelShape {
  f.ignore(LFM_UNREAD);
  const d = { recurrent: true, tied: true, theta: 1_000_000, kvHeads: 8, epsilonKey: 'norm_eps', epsilon: 1e-5 };
  const m = decoder(f, { ...d, ffnKey: f.has('block_ff_dim') ? 'block_ff_dim' : 'intermediate_size' });
  f.ignore('intermediate_size');
  const recurrence = { layers: convolutions(f, m.layers), of: shortConvolution(f, m.hiddenSize) };
  // The older name of the key counts where both are present.
  const tiedEmbeddings = f.has('tie_embedding') ? f.flag('tie_embedding') : m.tiedEmbeddings;
  return { ...withTraits(m, { recurrence, untrained: ['short convolutions'] }), qkNorm: true, tiedEmbeddings };
}

/** Linear attention with a fixed decay for each head (https://arxiv.org/abs/2501.08313, section 2.2), in blocks of positions. */
function lightning(f: ConfigFields, m: ModelShape): Recurrence {
  const size = m.headSize ?? m.hiddenSize / m.attentionHeads;
  const width = m.attentionHeads * size;
  return {
    parameters: 5 * m.hiddenSize * width,
    small: width,
    kept: 7 * width,
    flops: width * (4 * size + 4 * f.count('block_size', 256)),
  };
}

/** The layers with this number in a list of zeros and ones; undefined without the list. */
function marked(f: ConfigFields, key: string, layers: number, mark: number): number[] | undefined {
  const marks = f.perLayerOf(key, layers, [0, 1]);
  return marks && layersWhere(layers, (layer) => marks[layer] === mark);
}

/** Keys of MiMo's files that repeat others, or whose effect adds no parameters. */
const MIMO_UNREAD =
  'swa_rope_theta attention_chunk_size add_swa_attention_sink_bias add_full_attention_sink_bias attention_value_scale';

/** Multipliers and numerical settings, which add no parameters. */
const SCALES = `attention_in_multiplier attention_out_multiplier key_multiplier lm_head_multiplier embedding_multiplier mlp_multipliers
  ssm_multipliers ssm_in_multiplier ssm_out_multiplier mamba_expand mamba_d_ssm mamba_norm_before_gate mamba_use_mlp time_step_limit
  time_step_min time_step_max time_step_floor time_step_rank num_logits_to_keep layers_block_type layer_types attn_layer_indices mlp_expansion_factor`;

/** Families with convolutions or linear attention between layers of attention. */
export const HYBRID_FAMILIES: Families = {
  /** LFM2: gated short convolutions, with attention in some layers; the size of the feed-forward block is adjusted. */
  lfm2: (f) => {
    const m = lfm(f);
    const multiple = f.count('block_multiple_of', 256);
    const factor = f.isNull('block_ffn_dim_multiplier') ? undefined : f.number('block_ffn_dim_multiplier', 1);
    if (!f.flag('block_auto_adjust_ff_dim', true)) return m;
    const size = Math.floor((2 * m.ffnHiddenSize) / 3);
    const rounded = factor === undefined ? size : multiple * Math.ceil(Math.floor(factor * size) / multiple);
    return { ...m, ffnHiddenSize: rounded };
  },
  /** LFM2 with experts after the first layers. */
  lfm2_moe: (f) => {
    const m = lfm(f);
    const bias = f.flag('use_expert_bias', true);
    const mixture = mixtureOf(f, m.layers, {
      keys: EXPERTS,
      experts: 32,
      perToken: 4,
      dense: f.count('num_dense_layers', 2, 0),
      routing: { score: 'sigmoid', normalise: f.flag('norm_topk_prob', true), ...(bias && { bias }) },
    });
    return withTraits({ ...m, ...mixture }, { routedScaling: f.number('routed_scaling_factor', 1) });
  },
  /** MiniMax-Text-01 and M1: lightning attention in some layers, attention in the others, experts in all. */
  minimax: (f) => {
    for (const part of ['full_attn', 'linear_attn', 'mlp']) f.ignore(`${part}_alpha_factor ${part}_beta_factor`);
    f.only({ sliding_window: undefined });
    const mixture: Mixture = { sizeKey: 'intermediate_size', keys: LOCAL_EXPERTS, experts: 8, perToken: 2 };
    const m = decoder(f, { recurrent: true, theta: 1_000_000, kvHeads: 8, epsilon: 1e-5, mixture });
    const recurrence = { layers: recurrentLayers(f, m.layers, (layer) => layer % 2 === 1), of: lightning(f, m) };
    return withTraits(m, { recurrence, untrained: ['lightning attention'] });
  },
  /** MiMo-V2-Flash: in windowed layers twice the key heads and attention sinks; values are smaller than keys. */
  mimo_v2_flash: (f) => {
    const layers = f.layers();
    const inPattern = marked(f, 'hybrid_layer_pattern', layers, 1);
    const m = decoder(f, {
      ownPositions: true,
      kvHeads: 4,
      headSize: 192,
      epsilonKey: ['rms_norm_eps', 'layernorm_epsilon'],
      epsilon: 1e-5,
      windowed: (layer) => (inPattern ? inPattern.includes(layer) : layer !== 0 && (layer + 1) % 6 !== 0),
      window: 129,
    });
    // The other name is of the positions before the query alone.
    const before = f.optionalCount('sliding_window_size');
    const slidingWindow = m.slidingWindow && { ...m.slidingWindow, ...(before && { size: before + 1 }) };
    const given = marked(f, 'moe_layer_freq', layers, 0);
    const listed = denseLayersOf(f, layers, 1);
    const dense = given && !f.has('mlp_layer_types') ? leading(given) : listed;
    const routing = biasedRouting(f, f.count(ROUTED_EXPERTS, 256));
    const mixture = mixtureOf(f, layers, { keys: ROUTED_EXPERTS, experts: 256, perToken: 8, dense, routing });
    const valueHeadSize = f.count('v_head_dim', 128);
    f.only({
      swa_num_attention_heads: m.attentionHeads,
      swa_num_key_value_heads: 2 * m.kvHeads,
      swa_head_dim: m.headSize,
      swa_v_head_dim: valueHeadSize,
      n_shared_experts: undefined,
    });
    f.ignore(MIMO_UNREAD);
    const kind = (isWindowed: boolean): DifferingLayers => {
      const kvHeads = isWindowed ? 2 * m.kvHeads : m.kvHeads;
      const biases = f.flag('attention_bias')
        ? m.attentionHeads * (m.headSize ?? 0) + kvHeads * ((m.headSize ?? 0) + valueHeadSize)
        : 0;
      return {
        layers: layersWhere(layers, (layer) => hasWindow(m.slidingWindow, layer) === isWindowed),
        block: { kvHeads, valueHeadSize },
        small: biases + (isWindowed ? m.attentionHeads : 0),
      };
    };
    const differing = [kind(true), kind(false)];
    const untrained = ['attention with values smaller than keys', 'sinks of windowed layers alone'];
    return withTraits(
      { ...m, ...mixture, ...(slidingWindow && { slidingWindow }) },
      { differing, untrained, routedScaling: f.number('routed_scaling_factor', 1) },
    );
  },
  /**
   * Falcon-H1 (https://arxiv.org/abs/2507.22448): in every layer, attention and Mamba-2 process the same input and their outputs are added.
   * Keys and counts of transformers 5.23, modeling_falcon_h1.py.
   */
  falcon_h1: (f) => {
    f.ignore(SCALES);
    f.only({ projectors_bias: f.flag('mamba_proj_bias') });
    const m = decoder(f, {
      kvHeads: 8,
      epsilon: 1e-5,
      windowed: never,
      biased: true,
      traits: {
        ...(f.flag('mlp_bias') && { mlpBias: true }),
        outputBias: f.flag('attention_bias'),
        untrained: [...MAMBA_UNTRAINED, 'attention and a recurrence in one layer', 'multipliers of Falcon-H1'],
      },
    });
    const mamba = mamba2(f, m.hiddenSize, { ...HYBRID_MAMBA, norm: 'mamba_rms_norm' });
    const recurrence = { layers: layersWhere(m.layers, always), of: { ...mamba, besideAttention: true } };
    return withTraits(m, { recurrence });
  },
};
