import type { ConfigFields } from '../config-fields';
import { allBut, layersWhere } from '../config-window';
import type { ModelShape, Recurrence } from '../shape';
import { type Decoder, decoder, type Families, withTraits } from './decoder';
import { GRANITE_MIXTURE, multiplied } from './granite';
import { denseLayers } from './qwen';

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

/**
 * Gated DeltaNet (https://arxiv.org/abs/2412.06464): each token corrects, updates and reads a state of key size x value size per head, in
 * chunks of matrix products.
 */
function deltaNet(f: ConfigFields, hidden: number): Recurrence {
  const keyHeads = f.count('linear_num_key_heads', 16);
  const valueHeads = f.count('linear_num_value_heads', 32);
  const keySize = f.count('linear_key_head_dim', 128);
  const valueSize = f.count('linear_value_head_dim', 128);
  const [keys, values] = [keyHeads * keySize, valueHeads * valueSize];
  return {
    parameters: hidden * (2 * keys + 3 * values + 2 * valueHeads),
    small: (2 * keys + values) * f.count('linear_conv_kernel_dim', 4) + 2 * valueHeads + valueSize,
    kept: 4 * keys + 5 * values,
    flops: values * (6 * keySize + 8 * DELTA_CHUNK),
  };
}

/** Keys and defaults of Mamba-2 in Granite 4. */
const GRANITE_MAMBA = {
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
/** Family-specific key names and defaults. */
export type MambaKeys = typeof GRANITE_MAMBA;

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
  return {
    parameters: hidden * (projected + inner),
    small: convolved * kernel + 3 * heads + inner + biases,
    kept: 3 * inner + 2 * convolved,
    flops: inner * (4 * state + 2 * f.count(k.chunk, k.chunkSize)),
  };
}

const DELTA_UNTRAINED = ['layers of gated DeltaNet (linear attention)', 'gated attention'];
/**
 * Keys of the published files that no module reads: prediction modules, whose weights are in the files but not in the model, and the
 * precision in which servers keep states.
 */
const QWEN_UNREAD = 'mtp_num_hidden_layers mtp_use_dedicated_embeddings mamba_ssm_dtype';

/** Attention with an output gate in every fourth layer, gated DeltaNet in the others. */
function qwenRecurrent(f: ConfigFields, d: Decoder = {}): ModelShape {
  f.ignore(QWEN_UNREAD);
  // The second is the gate of the recurrence, under the second name of SiLU.
  f.only({ attn_output_gate: true, output_gate_type: 'swish' });
  const interval = f.count('full_attention_interval', 4);
  const fields = { qkNorm: true };
  const m = decoder(f, { headSize: 256, kvHeads: 2, recurrent: true, norm: 'rms-offset', biased: true, fields, ...d });
  const layers = recurrentLayers(f, m.layers, allBut(interval));
  const recurrence = { layers, of: deltaNet(f, m.hiddenSize) };
  return withTraits(m, { recurrence, gatedAttention: true, untrained: DELTA_UNTRAINED });
}

const withExperts = (f: ConfigFields, experts: number, perToken: number, d: Decoder = {}): ModelShape =>
  qwenRecurrent(f, {
    ...d,
    mixture: ({ layers }) => ({
      experts,
      perToken,
      dense: denseLayers(f, layers),
      routing: { normalise: f.flag('norm_topk_prob', true) },
      sharedExperts: 1,
    }),
    traits: { sharedFfnHiddenSize: f.count('shared_expert_intermediate_size', 512), sharedExpertGate: true },
  });

/** Families with recurrences between layers of attention. */
export const RECURRENT_FAMILIES: Families = {
  /** Qwen 3 Next: gated DeltaNet in three of four layers, 512 experts. */
  qwen3_next: (f) => withExperts(f, 512, 10),
  /** Text model of Qwen 3.5. */
  qwen3_5_text: (f) => {
    f.isEmpty('mlp_only_layers');
    return qwenRecurrent(f, { kvHeads: 4 });
  },
  /** Text model of Qwen 3.5 with experts in every layer. */
  qwen3_5_moe_text: (f) => withExperts(f, 256, 8, { ffnKey: 'moe_intermediate_size' }),
  /** Granite 4: Mamba-2 in most layers, a shared feed-forward block, and optionally experts beside it. */
  granitemoehybrid: (f) => {
    f.ignore('mamba_expand position_embedding_type time_step_limit normalization_function init_method');
    const isDense = f.count('num_local_experts', 8, 0) === 0;
    if (isDense) f.ignore('num_experts_per_tok');
    const shared = f.count('shared_intermediate_size', 1024, isDense ? 1 : 0);
    const m = multiplied(f, {
      recurrent: true,
      ...(isDense
        ? { fields: { ffnHiddenSize: shared } }
        : { mixture: { ...GRANITE_MIXTURE, sharedExperts: 1 }, traits: { sharedFfnHiddenSize: shared } }),
    });
    const layers = recurrentLayers(f, m.layers, () => true);
    const recurrence = { layers, of: mamba2(f, m.hiddenSize, GRANITE_MAMBA) };
    return withTraits(m, { recurrence, untrained: ['Mamba-2 layers'] });
  },
};
