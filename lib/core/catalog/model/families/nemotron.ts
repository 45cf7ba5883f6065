import type { Config, ConfigFields } from '../config-fields';
import { layersWhere } from '../config-window';
import { type DifferingLayers, MAX_LAYERS, type ModelShape } from '../shape';
import { biasedRouting, decoder, type Families, mixtureOf, ROUTED_EXPERTS, withTraits } from './decoder';
import { type MambaKeys, mamba2 } from './recurrent';

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

function nemotronLayers(f: ConfigFields): NemotronLayer[] {
  const pattern = f.text('hybrid_override_pattern', '');
  const given = f.list('layers_block_type') ?? (pattern ? [...pattern] : undefined);
  const named = given ?? ['mamba', 'moe', 'attention', 'mlp'];
  const key = f.has('layers_block_type') ? 'layers_block_type' : 'hybrid_override_pattern';
  if (named.length > MAX_LAYERS)
    f.refuse(key, `must have at most ${MAX_LAYERS} layers`, 'copy it from the model', `${named.length} layers`);
  return named.slice(0, MAX_LAYERS).map((name) => {
    const type = NEMOTRON_TYPES[String(name)];
    if (!type) f.refuse(key, `must be of ${Object.keys(NEMOTRON_TYPES).join(', ')}`, 'correct it', name);
    return type ?? 'dense';
  });
}

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

interface NasBlock {
  attention?: Config;
  ffn?: Config;
}

/** Options of a block of Nemotron-NAS that describe parts which Slipway does not know. */
const NAS_OTHERS = ['replace_with_linear', 'sparsify', 'window_length', 'num_sink_tokens'];

/** The inner size of a feed-forward block: two thirds of the multiple of the hidden size, rounded up to 256. */
const nasInner = (multiple: unknown, hidden: number): number =>
  256 * Math.ceil(Math.floor((2 * Number(multiple) * hidden) / 3) / 256);

/** Layers by the sizes of their block, and without the norm of a part that they do not have. */
function nasLayers(blocks: readonly NasBlock[], m: ModelShape): DifferingLayers[] {
  const found = new Map<string, DifferingLayers>();
  blocks.forEach(({ attention, ffn }, layer) => {
    const kvHeads = m.attentionHeads / Number(attention?.n_heads_in_group ?? 1);
    const block = { kvHeads, ffn: ffn?.no_op ? 0 : nasInner(ffn?.ffn_mult, m.hiddenSize) };
    const missing = (attention?.no_op ? 1 : 0) + (ffn?.no_op ? 1 : 0);
    const key = `${block.kvHeads} ${block.ffn} ${missing}`;
    const known = found.get(key) ?? { layers: [], block, small: -missing * m.hiddenSize };
    found.set(key, { ...known, layers: [...known.layers, layer] });
  });
  return [...found.values()];
}

/** Numerical settings and initialisation of Mamba-2, and keys that are present even in models without the corresponding part. */
const NEMOTRON_IGNORED = `attention_bias expand mamba_proj_bias use_mamba_kernels mamba_hidden_act time_step_min time_step_max time_step_limit time_step_floor
  mamba_ssm_cache_dtype moe_shared_expert_overlap mtp_layers_block_type mtp_hybrid_override_pattern num_nextn_predict_layers residual_in_fp32 rescale_prenorm_residual num_logits_to_keep
  num_hidden_layers rms_norm_eps time_step_rank n_routed_experts n_shared_experts moe_intermediate_size moe_shared_expert_intermediate_size num_experts_per_tok
  routed_scaling_factor n_group topk_group norm_topk_prob sliding_window`;

/** Nemotron-H and Nemotron-NAS. */
export const NEMOTRON_FAMILIES: Families = {
  /** Nemotron-H and Nemotron 3: each layer is either Mamba-2, attention, a feed-forward block or experts. */
  nemotron_h: (f) => {
    const types = nemotronLayers(f);
    if (f.layers('num_hidden_layers', types.length) !== types.length)
      f.refuse('num_hidden_layers', `must be the ${types.length} layers that the file lists`, 'correct one of the two');
    const where = (type: NemotronLayer) => layersWhere(types.length, (layer) => types[layer] === type);
    f.only({ mlp_bias: false });
    f.ignore(NEMOTRON_IGNORED);
    const m = decoder(f, {
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
    f.only({ attention_head_dim: m.headSize });
    const recurrence = { layers: where('recurrent'), of: mamba2(f, m.hiddenSize, NEMOTRON_MAMBA) };
    const alone = {
      mixing: [...where('recurrent'), ...where('attention')],
      feeding: [...where('dense'), ...where('experts')],
    };
    const traits = {
      recurrence,
      alone,
      normsPerBlock: 1,
      untrained: ['Mamba-2 layers', 'layers of attention or a feed-forward block alone'],
    };
    // transformers creates a separate embedding and output head, and attention without biases, regardless of the file.
    const mixed = withTraits(m, traits, { tiedEmbeddings: false });
    f.ignore('moe_latent_size');
    return where('experts').length === 0 ? mixed : nemotronExperts(f, mixed, types);
  },
  /** Nemotron-NAS (https://arxiv.org/abs/2411.19146): Llama's layers, each with its own sizes, and some without attention or a feed-forward block. */
  'nemotron-nas': (f) => {
    f.only({ mlp_bias: false, attention_bias: false });
    f.ignore('intermediate_size');
    const layers = f.layers();
    const blocks = (f.perLayer('block_configs', layers) ?? []) as NasBlock[];
    if (blocks.length === 0) f.refuse('block_configs', 'must state the blocks of all layers', 'copy it from the model');
    for (const part of blocks.flatMap(({ attention, ffn }) => [attention, ffn])) {
      const other = NAS_OTHERS.find((key) => part?.[key]);
      if (other) f.refuse('block_configs', `must have no ${other}`, 'use model.architecture', part?.[other]);
    }
    const m = decoder(f, { recurrent: true, ffn: 1 });
    const where = (part: keyof NasBlock) => layersWhere(layers, (layer) => blocks[layer]?.[part]?.no_op === true);
    const traits = {
      differing: nasLayers(blocks, m),
      alone: { mixing: where('ffn'), feeding: where('attention') },
      untrained: ['layers of different sizes'],
    };
    return withTraits(m, traits, {
      ffnHiddenSize: Math.max(1, ...traits.differing.map(({ block }) => block?.ffn ?? 0)),
    });
  },
};
