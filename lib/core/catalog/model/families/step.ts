import type { ConfigFields } from '../config-fields';
import { layersWhere } from '../config-window';
import type { ModelShape } from '../shape';
import { decoder, type Families, leading, mixtureOf, withTraits } from './decoder';

/** Keys without parameters: positions and limits of activations by layer, prediction modules, and names of what all files have. */
const UNREAD = `partial_rotary_factors yarn_only_types use_rope_layers swiglu_limits swiglu_limits_shared num_nextn_predict_layers need_fp32_gate
  att_impl_type zero_centered max_seq_len use_moe moe_layer_offset moe_every_n_layer moe_dynamic_exp_p sink num_key_value_heads
  mtp_layer_types mtp_mlp_layer_types per_layer_config query_pre_attn_scalar`;

/** Entries of a list by layer; undefined without the list. */
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
