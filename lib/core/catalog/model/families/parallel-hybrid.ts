import { keysOf } from '../config-fields';
import { always, layersWhere, never } from '../config-window';
import { attentionBiasOf, decoder, type Family, withTraits } from './decoder';
import { HYBRID_MAMBA, MAMBA_UNTRAINED, mamba2 } from './recurrent';

/** Multipliers and numerical settings, which add no parameters. */
const SCALES = keysOf(
  `attention_in_multiplier attention_out_multiplier key_multiplier lm_head_multiplier embedding_multiplier mlp_multipliers
  ssm_multipliers ssm_in_multiplier ssm_out_multiplier mamba_expand mamba_d_ssm mamba_norm_before_gate mamba_use_mlp time_step_limit
  time_step_min time_step_max time_step_floor time_step_rank num_logits_to_keep layers_block_type layer_types attn_layer_indices mlp_expansion_factor`,
);

/**
 * Falcon-H1 (https://arxiv.org/abs/2507.22448): in every layer, attention and Mamba-2 process the same input and their outputs are added.
 * Keys and counts of transformers 5.23, modeling_falcon_h1.py.
 */
export const falconH1: Family = (f, modelType) => {
  f.ignore(...SCALES);
  f.only('projectors_bias', f.flag('mamba_proj_bias'));
  const m = decoder(f, modelType, { kvHeads: 8, epsilon: 1e-5, windowed: never });
  const mamba = mamba2(f, m.hiddenSize, { ...HYBRID_MAMBA, norm: 'mamba_rms_norm' });
  const recurrence = {
    layers: layersWhere(m.layers, always),
    of: { ...mamba, besideAttention: true },
  };
  const mlpBias = f.flag('mlp_bias');
  return withTraits(
    m,
    {
      recurrence,
      ...(mlpBias && { mlpBias }),
      outputBias: f.flag('attention_bias'),
      untrained: [...MAMBA_UNTRAINED, 'attention and a recurrence in one layer', 'multipliers of Falcon-H1'],
    },
    attentionBiasOf(f),
  );
};
