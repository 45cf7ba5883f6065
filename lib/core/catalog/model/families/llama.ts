import type { ConfigFields } from '../config-fields';
import { llama3Scaling } from '../config-rope';
import { allBut, layersOf, layersWhere, never, typesOf } from '../config-window';
import { headSizeOf } from '../parameters';
import type { FamilyTraits, ModelShape } from '../shape';
import {
  attentionBiasOf,
  capOf,
  type Decoder,
  decoder,
  EXPERTS,
  type Families,
  type Family,
  LOCAL_EXPERTS,
  type Mixture,
  mixtureOf,
  withTraits,
} from './decoder';

const biased =
  (d: Decoder = {}): Family =>
  (f) =>
    decoder(f, { biased: true, ...d, traits: { ...(f.flag('mlp_bias') && { mlpBias: true }), ...d.traits } });

const RELU2: Decoder = { gated: false, activation: 'relu2' };

/** Mistral: Llama with a window in all layers, of 4,096 positions in a file without the key; null = none. */
const mistral: Family = (f) => decoder(f, { kvHeads: 8, window: f.isNull('sliding_window') ? 0 : 4096 });

/** Keys of the published files that do not concern these layers: other layers of MiniMax M1, and MTP modules. */
const MINIMAX_IGNORED = `attn_type_list mtp_transformer_layers num_mtp_modules use_mtp mlp_intermediate_size layernorm_full_attention_beta
  layernorm_linear_attention_beta layernorm_mlp_beta shared_moe_mode`;

const useWindow = (f: ConfigFields) => (f.flag('use_sliding_window') ? undefined : never);

/** `no_rope_layers` is 1 for layers with rotary positions; without it, every `no_rope_layer_interval`-th layer has none. */
function unrotatedOf(f: ConfigFields, layers: number): Pick<ModelShape, 'unrotatedLayers'> {
  const every = f.count('no_rope_layer_interval', 4);
  const given = f.isEmpty('no_rope_layers') ? undefined : f.perLayer('no_rope_layers', layers);
  const rotates = (layer: number) => (given ? given[layer] === 1 : allBut(every)(layer));
  const unrotatedLayers = layersWhere(layers, (layer) => !rotates(layer));
  f.lists.set(
    'no_rope_layers',
    layersOf(layers, (layer) => (rotates(layer) ? 1 : 0)),
  );
  return { unrotatedLayers };
}

/** Unless `layer_types` is set, layers with rotary positions use chunked attention. */
function chunkOf(f: ConfigFields, m: ModelShape, unrotated: readonly number[]): Pick<FamilyTraits, 'attentionChunk'> {
  const size = f.count('attention_chunk_size', 8192);
  if (f.has('layer_types')) return {};
  const layers = layersWhere(m.layers, (layer) => !unrotated.includes(layer));
  f.lists.set('layer_types', typesOf(m.layers, layers, 'chunked_attention'));
  return layers.length > 0 ? { attentionChunk: { size, layers } } : {};
}

function llama4Mixture(f: ConfigFields, layers: number) {
  const interval = f.count('interleave_moe_layer_step', 1);
  const given = f.layerNumbers('moe_layers', layers);
  const isMixture = (layer: number) => (given ? given.includes(layer) : layer % interval === interval - 1);
  f.lists.set('moe_layers', layersWhere(layers, isMixture));
  return mixtureOf(f, layers, {
    sizeKey: 'intermediate_size',
    keys: ['num_local_experts'],
    experts: 16,
    perToken: 1,
    dense: layersWhere(layers, (layer) => !isMixture(layer)),
    sharedExperts: 1,
    routing: { score: 'sigmoid', normalise: false },
  });
}

/**
 * OLMo: norms without weights in the first version; from the second version on, norms after each sublayer and over all queries and keys.
 */
function olmoOf(f: ConfigFields, d: Decoder): ModelShape {
  const clips = f.number('clip_qkv', 0) !== 0;
  return decoder(f, {
    windowed: never,
    biased: true,
    ...d,
    traits: { ...(clips && { untrained: ['clip_qkv'] }), ...d.traits },
  });
}

const POST: Decoder = { traits: { qkNorm: 'whole' }, fields: { qkNorm: true, normPlacement: 'post' } };

const OLMO3: Decoder = { theta: 500_000, windowTheta: 'theta', epsilon: 1e-5, windowed: allBut(4), window: 4096 };

const olmoMixture = (f: ConfigFields, experts: number, perToken: number): Mixture => ({
  sizeKey: 'intermediate_size',
  keys: EXPERTS,
  experts,
  perToken,
  routing: { normalise: f.flag('norm_topk_prob') },
});

/** Families that are Llama with other sizes, biases or activations. */
export const LLAMA_FAMILIES: Families = {
  /** Llama 1 to 3: pre-norms, grouped queries, a gated MLP. */
  llama: biased({ windowed: never }),
  /** IQuest-Coder: Llama with other default sizes. */
  iquestcoder: biased({ windowed: never, kvHeads: 8, headSize: 128 }),
  /** Code World Model: Llama 3 with a window in three of four layers. */
  cwm: biased({
    theta: 1_000_000,
    ropeScaling: llama3Scaling(16),
    windowed: (layer) => layer % 4 !== 0,
    window: 8192,
    epsilon: 1e-5,
    kvHeads: 8,
    headSize: 128,
  }),
  /** Llama with other key names for the biases. */
  internlm3: (f) => {
    const traits = { ...((f.flag('bias') || f.flag('mlp_bias')) && { mlpBias: true }) };
    const fields = { ...((f.flag('qkv_bias') || f.flag('attention_bias')) && { attentionBias: true }) };
    return decoder(f, { windowed: never, epsilon: 1e-5, kvHeads: 2, headSize: 128, traits, fields });
  },
  ministral: mistral,
  mistral,
  /** Ministral 3: lowers the attention temperature of distant positions as in Llama 4. */
  ministral3: (f) =>
    decoder(f, { epsilon: 1e-5, kvHeads: 8, headSize: 128, traits: { untrained: ['llama_4_scaling_beta'] } }),
  /** Mixtral: Mistral with experts in each layer. */
  mixtral: (f) =>
    decoder(f, {
      theta: 1_000_000,
      epsilon: 1e-5,
      kvHeads: 8,
      mixture: { sizeKey: 'intermediate_size', keys: LOCAL_EXPERTS, experts: 8, perToken: 2 },
    }),
  /** MiniMax M2: QK norm over all heads, sigmoid routing with a bias, rotary positions on part of each head. */
  minimax_m2: (f) => {
    f.only({ use_qk_norm: true, qk_norm_type: 'per_layer', scoring_func: 'sigmoid', use_routing_bias: true });
    f.only({ shared_intermediate_size: 0 });
    f.ignore(MINIMAX_IGNORED);
    const m = decoder(f, {
      theta: 5_000_000,
      windowed: never,
      kvHeads: 8,
      headSize: 128,
      mixture: {
        sizeKey: 'intermediate_size',
        keys: LOCAL_EXPERTS,
        experts: 256,
        perToken: 8,
        routing: { score: 'sigmoid', normalise: true, bias: true },
      },
      traits: { qkNorm: 'whole' },
      fields: { qkNorm: true },
    });
    const rotated = f.optionalCount('rotary_dim');
    const partialRotary = m.partialRotary ?? (rotated ?? headSizeOf(m)) / headSizeOf(m);
    return { ...m, ...(partialRotary !== 1 && { partialRotary }) };
  },
  /** Arcee: Llama with a squared ReLU and no gate. */
  arcee: biased({ ...RELU2, windowed: never, epsilon: 1e-5 }),
  /** Nemotron 4: LayerNorm, a squared ReLU without a gate, rotary positions on half of each head. */
  nemotron: biased({ ...RELU2, norm: 'layer', epsilonKey: 'norm_eps', epsilon: 1e-5, partial: 0.5 }),
  /** Apertus: QK norm and the xIELU activation without a gate. */
  apertus: (f) => {
    const rope = { theta: 12_000_000, ropeScaling: llama3Scaling(8) };
    // The activation has two parameters.
    const parts = { traits: { blockParameters: 2 }, fields: { qkNorm: true } };
    return biased({ ...rope, gated: false, activation: 'xielu', epsilon: 1e-5, windowed: never, ...parts })(f);
  },
  /** Helium: Llama with interleaved rotary positions. */
  helium: (f) => {
    const traits = { outputBias: false, interleavedRope: true };
    const m = biased({ theta: 100_000, epsilon: 1e-8, windowed: never, headSize: 128, kvHeads: 20, traits })(f);
    if (m.headSize !== undefined && m.headSize * m.attentionHeads !== m.hiddenSize)
      f.refuse('head_dim', `must be hidden_size / num_attention_heads for ${f.modelType}`, 'correct one of the three');
    return m;
  },
  /** Seed-OSS: Llama with biases of queries, keys and values, and optionally of the output. */
  seed_oss: (f) => {
    const traits = { outputBias: f.flag('attention_out_bias') };
    const fields = { attentionBias: f.flag('attention_bias', true) };
    return biased({ windowed: never, kvHeads: 8, headSize: 128, biased: false, traits, fields })(f);
  },
  /** BitNet: a norm before each of the two output projections. */
  bitnet: (f) => {
    const d: Decoder = { theta: 500_000, activation: 'relu2', epsilon: 1e-5, windowed: never, kvHeads: 5 };
    const m = biased(d)(f);
    return withTraits(m, {
      blockParameters: m.hiddenSize + m.ffnHiddenSize,
      untrained: ['norms before output projections'],
    });
  },
  /** Jais 2: LayerNorm, a squared ReLU without a gate, biases everywhere. */
  jais2: (f) =>
    decoder(f, {
      ...RELU2,
      norm: 'layer',
      epsilonKey: 'layer_norm_eps',
      epsilon: 1e-5,
      windowed: never,
      traits: { mlpBias: f.flag('mlp_bias', true) },
      fields: { attentionBias: f.flag('attention_bias', true) },
    }),
  /** nanochat: norms without weights, a squared ReLU without a gate, a soft cap on logits. */
  nanochat: (f) => {
    const final = capOf(f, 'final_logit_softcapping', 15);
    const fields = { qkNorm: true, attentionBias: f.flag('attention_bias'), ...(final && { logitSoftcap: { final } }) };
    const traits = { qkNorm: 'weightless' as const };
    return decoder(f, { ...RELU2, norm: 'constant', windowed: never, traits, fields });
  },
  /** SmolLM3: Llama without rotary positions in every fourth layer. */
  smollm3: (f) => {
    const m = biased({ theta: 2_000_000, tied: true, kvHeads: 4, windowed: useWindow(f) })(f);
    f.ignore('max_window_layers');
    return { ...m, ...unrotatedOf(f, m.layers) };
  },
  /** Llama 4: chunked attention, layers without rotary positions, one shared expert, sigmoid weights on the inputs of experts. */
  llama4_text: (f) => {
    const base = decoder(f, { theta: 500_000, epsilon: 1e-5, windowed: never, kvHeads: 8, headSize: 128 });
    const mixture = llama4Mixture(f, base.layers);
    const temperature = f.flag('attn_temperature_tuning', true);
    f.ignore('for_llm_compressor');
    const heat = { scale: f.number('attn_scale', 0.1), floor: f.count('floor_scale', 8192) };
    const unrotated = unrotatedOf(f, base.layers);
    return withTraits(
      {
        ...base,
        ...mixture,
        expertFfnHiddenSize: base.ffnHiddenSize,
        ffnHiddenSize: f.count('intermediate_size_mlp'),
        ...unrotated,
      },
      {
        qkNorm: 'weightless',
        interleavedRope: true,
        weighsExpertInputs: true,
        ...chunkOf(f, base, unrotated.unrotatedLayers ?? []),
        ...(temperature && { attentionTemperature: heat }),
        ...(base.ropeScaling?.type === 'yarn' && { untrained: ['yarn before norms of queries and keys'] }),
      },
      { qkNorm: f.flag('use_qk_norm', true), ...attentionBiasOf(f) },
    );
  },
  /** OLMo: Llama with norms without weights; files with `clip_qkv` are supported for parameter counts, not for training. */
  olmo: (f) => olmoOf(f, { norm: 'constant', epsilonKey: 'layer_norm_eps', epsilon: 1e-5 }),
  /** OLMo 2: norms after attention and MLP, QK norm over all heads. */
  olmo2: (f) => olmoOf(f, { ...POST, epsilon: 1e-5 }),
  /** OLMo 3: OLMo 2 with a window in three of four layers, whose positions are never scaled (https://arxiv.org/abs/2512.13961). */
  olmo3: (f) => olmoOf(f, { ...POST, ...OLMO3 }),
  /** OLMoE: pre-norms, QK norm over all heads, 64 experts in each layer. */
  olmoe: (f) =>
    olmoOf(f, { epsilon: 1e-5, traits: { qkNorm: 'whole' }, fields: { qkNorm: true }, mixture: olmoMixture(f, 64, 8) }),
  /** FlexOlmo: OLMo 2's norms with seven experts in each layer. */
  flex_olmo: (f) => olmoOf(f, { ...POST, theta: 500_000, mixture: olmoMixture(f, 7, 5) }),
};
