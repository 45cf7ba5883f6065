import type { ConfigFields } from '../config-fields';
import { layersWhere } from '../config-window';
import { hasWindow } from '../parameters';
import type { DifferingLayers, ModelShape, Recurrence } from '../shape';
import {
  biasedRouting,
  decoder,
  denseLayersOf,
  type Families,
  LOCAL_EXPERTS,
  leading,
  type Mixture,
  mixtureOf,
  ROUTED_EXPERTS,
  withTraits,
} from './decoder';
import { recurrentLayers } from './recurrent';

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

/** Families whose layers alternate between two kinds of attention. */
export const HYBRID_FAMILIES: Families = {
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
};

/** Keys without parameters: positions and limits of activations by layer, prediction modules, and names of what all files have. */
const UNREAD = `partial_rotary_factors yarn_only_types use_rope_layers swiglu_limits swiglu_limits_shared num_nextn_predict_layers need_fp32_gate
  att_impl_type zero_centered max_seq_len use_moe moe_layer_offset moe_every_n_layer moe_dynamic_exp_p sink num_key_value_heads
  mtp_layer_types mtp_mlp_layer_types per_layer_config query_pre_attn_scalar`;

const ofLayers = (f: ConfigFields, key: string, layers: number): unknown[] | undefined =>
  f.perLayer(key, layers, f.count('num_nextn_predict_layers', 0, 0));

/** Layers without experts: from `mlp_layer_types`, from the numbers of the others in `moe_layers_enum`, or the first three. */
function denseLayers(f: ConfigFields, layers: number): number | number[] {
  const types = ofLayers(f, 'mlp_layer_types', layers);
  const numbers = f.text('moe_layers_enum', '').split(',').filter(Boolean).map(Number);
  const isSparse = (layer: number) =>
    types ? types[layer] === 'sparse' : numbers.length > 0 ? numbers.includes(layer) : layer >= 3;
  return leading(layersWhere(layers, (layer) => !isSparse(layer)));
}

/** Attention with more heads in windowed layers, and a gate for each head. */
function attentionOf(f: ConfigFields, m: ModelShape) {
  const types = ofLayers(f, 'layer_types', m.layers) ?? [];
  const other = f.section('attention_other_setting') ?? {};
  const heads = f.count('num_sliding_attention_heads', Number(other.num_attention_heads ?? m.attentionHeads));
  const windowed = layersWhere(m.layers, (layer) => types[layer] === 'sliding_attention');
  const full = layersWhere(m.layers, (layer) => types[layer] !== 'sliding_attention');
  const size = f.count('sliding_window', 0, 0);
  if (other.head_dim !== undefined && other.head_dim !== m.headSize)
    f.refuse('attention_other_setting', `must have head_dim ${m.headSize}`, 'use model.architecture', other.head_dim);
  return {
    ...(size > 0 && windowed.length > 0 && { slidingWindow: { size, pattern: windowed } }),
    differing: [
      { layers: windowed, block: { heads }, small: m.hiddenSize * heads },
      { layers: full, small: m.hiddenSize * m.attentionHeads },
    ],
  };
}

/** Step 3.5 and 3.7. */
export const STEP_FAMILIES: Families = {
  /** Step 3.5 and the text model of Step 3.7. Modules of transformers 5.23, modeling_step3p7.py. */
  step3p5: (f) => {
    f.ignore(UNREAD);
    f.only({ use_qk_norm: true, use_head_wise_attn_gate: true });
    f.only({ moe_router_activation: 'sigmoid', attention_bias: false, mlp_bias: false });
    const d = { recurrent: true, ownPositions: true, headSize: 128, norm: 'rms-offset', epsilon: 1e-5 } as const;
    const m = decoder(f, d);
    const kvHeads = f.count(['num_attention_groups', 'num_key_value_heads'], 8);
    const { slidingWindow, differing } = attentionOf(f, m);
    const mixture = mixtureOf(f, m.layers, {
      keys: ['moe_num_experts', 'n_routed_experts', 'num_local_experts'],
      experts: 288,
      perTokenKeys: ['moe_top_k', 'num_experts_per_tok'],
      perToken: 8,
      dense: denseLayers(f, m.layers),
      sharedExperts: 1,
      routing: {
        score: 'sigmoid',
        bias: f.flag('use_moe_router_bias', true),
        normalise: f.flag('norm_expert_weight', true),
      },
    });
    const traits = {
      sharedFfnHiddenSize: f.count(['share_expert_dim', 'share_expert_dims'], 1280),
      routedScaling: f.number('moe_router_scaling_factor', 1),
      differing,
      untrained: ['gates of heads', 'windowed layers with more heads', 'limits of activations by layer'],
    };
    return withTraits({ ...m, ...mixture, kvHeads, qkNorm: true, ...(slidingWindow && { slidingWindow }) }, traits);
  },
};
