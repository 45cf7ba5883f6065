import type { ConfigFields } from '../config-fields';
import { allBut, never } from '../config-window';
import { headSizeOf } from '../parameters';
import type { ModelShape, RopeScaling } from '../shape';
import { type Decoder, decoder, type Families, type Family, LOCAL_EXPERTS, withTraits } from './decoder';

const LAYER: Decoder = { norm: 'layer', epsilonKey: 'layer_norm_eps', epsilon: 1e-5, windowed: never };
const PARALLEL = ['attention and feed-forward in parallel'];

function cohereOf(f: ConfigFields, d: Decoder): ModelShape {
  f.ignore(
    `use_embedding_sharing use_gated_activation use_parallel_block use_parallel_embedding position_embedding_type
    rotary_pct order_of_interleaved_layers`,
  );
  return decoder(f, {
    ...LAYER,
    norm: 'layer-without-bias',
    tied: true,
    biased: true,
    ...d,
    traits: {
      normsPerBlock: 1,
      logitScale: f.number('logit_scale', 0.0625),
      interleavedRope: true,
      untrained: PARALLEL,
      ...d.traits,
    },
  });
}

/** Sizes under GPT-2's key names, and its learned positions. */
function gpt2Sizes(f: ConfigFields, isTied: boolean): ModelShape {
  const hiddenSize = f.count(['n_embd', 'hidden_size']);
  const attentionHeads = f.count(['n_head', 'num_attention_heads']);
  f.only({ add_cross_attention: false });
  f.ignore('activation_function scale_attn_weights scale_attn_by_inverse_layer_idx');
  return {
    layers: f.layers(['n_layer', 'num_hidden_layers']),
    hiddenSize,
    attentionHeads,
    kvHeads: attentionHeads,
    ffnHiddenSize: f.optionalCount('n_inner') ?? 4 * hiddenSize,
    vocabularySize: f.count('vocab_size'),
    gatedMlp: false,
    tiedEmbeddings: f.flag('tie_word_embeddings', isTied),
    normEpsilon: f.number('layer_norm_epsilon', 1e-5),
    family: { modelType: f.modelType, norm: 'layer', mlpBias: true },
  };
}

const learned = (f: ConfigFields, m: ModelShape, positions = 1024, rows = 0) =>
  withTraits(
    m,
    {
      learnedPositions: f.count(['n_positions', 'max_position_embeddings'], positions) + rows,
      untrained: ['learned positions'],
    },
    { attentionBias: true },
  );

/** GPT-J and CodeGen: rotary positions, parallel sublayers, a bias in the output head. */
const gptj: Family = (f) => {
  const m = gpt2Sizes(f, false);
  f.ignore('n_positions');
  const size = m.hiddenSize / m.attentionHeads;
  const partialRotary = f.count('rotary_dim', 64) / size;
  return withTraits(
    m,
    { normsPerBlock: 1, headBias: true, interleavedRope: true, untrained: PARALLEL },
    { partialRotary },
  );
};

const GPT_OSS_ROPE: RopeScaling = { type: 'yarn', factor: 32, truncate: false, originalMaxPositionEmbeddings: 4096 };

/** Families with LayerNorm, feed-forward blocks without a gate, parallel sublayers or learned positions. */
export const GPT_FAMILIES: Families = {
  /** Phi 1 to 2: attention and MLP in parallel, biases, rotary positions on half of each head. */
  phi: (f) => {
    f.only({ qk_layernorm: false });
    // The file of Phi 1 says false and has all biases.
    f.ignore('attention_bias');
    const m = decoder(f, {
      ...LAYER,
      gated: false,
      partial: 0.5,
      traits: { normsPerBlock: 1, mlpBias: true, headBias: true, untrained: PARALLEL },
      fields: { attentionBias: true },
    });
    f.only({ rotary_dim: headSizeOf(m) * (m.partialRotary ?? 1) });
    return m;
  },
  /** Phi 3 and 4: Llama with fused matrices for queries, keys and values, and for gate and up projection. */
  phi3: (f) => {
    f.ignore(
      `original_max_position_embeddings embd_layer full_attn_mod interpolate_factor lm_head_bias mlp_bias
    attention_bias`,
    );
    return decoder(f, { epsilon: 1e-5 });
  },
  /** Phi 3.5 MoE: LayerNorm, sixteen experts of which a sparse mixer selects two. */
  phimoe: (f) => {
    f.ignore('original_max_position_embeddings');
    return decoder(f, {
      norm: 'layer',
      theta: 1_000_000,
      epsilon: 1e-5,
      kvHeads: 8,
      biased: true,
      mixture: { sizeKey: 'intermediate_size', keys: ['num_local_experts'], experts: 16, perToken: 2 },
      traits: { ...(f.flag('lm_head_bias') && { headBias: true }), untrained: ['sparse mixer routing'] },
    });
  },
  /** Command R: attention and MLP in parallel, LayerNorm without bias, scaled logits. */
  cohere: (f) => {
    const isNormed = f.flag('use_qk_norm');
    return cohereOf(f, { theta: 500_000, ...(isNormed && { traits: { qkNorm: 'whole' }, fields: { qkNorm: true } }) });
  },
  /** Command R7B and A: Command R with windows in three of four layers. */
  cohere2: (f) => {
    const period = f.count(['sliding_window_pattern', '_sliding_window_pattern'], 4);
    f.only({ use_qk_norm: false });
    return cohereOf(f, { windowed: allBut(period), window: 4096 });
  },
  /** StarCoder 2: LayerNorm, biases, an MLP without a gate. */
  starcoder2: (f) => {
    f.only({ norm_type: 'layer_norm', mlp_type: 'default' });
    const bias = f.flag('use_bias', true);
    return decoder(f, {
      norm: 'layer',
      epsilonKey: 'norm_epsilon',
      epsilon: 1e-5,
      gated: false,
      tied: true,
      kvHeads: 2,
      traits: { mlpBias: bias },
      fields: { attentionBias: bias },
    });
  },
  /** StableLM 2: LayerNorm, rotary positions on a quarter of each head, optionally attention and MLP in parallel. */
  stablelm: (f) => {
    f.only({ qk_layernorm: false });
    const isParallel = f.flag('use_parallel_residual');
    return decoder(f, {
      ...LAYER,
      kvHeads: 32,
      headSize: null,
      partial: 0.25,
      traits: { outputBias: false, ...(isParallel && { normsPerBlock: 1, untrained: PARALLEL }) },
      fields: { attentionBias: f.flag('use_qkv_bias') },
    });
  },
  /** GPT-NeoX and Pythia: attention and MLP in parallel, biases, rotary positions on a quarter of each head. */
  gpt_neox: (f) => {
    f.ignore('rotary_emb_base');
    return decoder(f, {
      ...LAYER,
      gated: false,
      activation: 'gelu',
      headSize: null,
      partial: f.number('rotary_pct', 0.25),
      traits: { mlpBias: true, untrained: f.flag('use_parallel_residual', true) ? PARALLEL : [] },
      fields: { attentionBias: f.flag('attention_bias', true) },
    });
  },
  /** GPT-2: learned positions, LayerNorm, biases, tied embeddings. */
  gpt2: (f) => learned(f, gpt2Sizes(f, true)),
  /** GPTBigCode (StarCoder): GPT-2 with a single key and value head. */
  gpt_bigcode: (f) => {
    const m = gpt2Sizes(f, true);
    f.ignore('num_key_value_heads');
    return learned(f, f.flag('multi_query', true) ? { ...m, kvHeads: 1 } : m);
  },
  codegen: gptj,
  gptj,
  /** OPT: learned positions with two extra rows, ReLU, LayerNorm. */
  opt: (f) => {
    const m = decoder(f, {
      ...LAYER,
      gated: false,
      activation: 'relu',
      activationKey: 'activation_function',
      ffnKey: 'ffn_dim',
      tied: true,
      headSize: null,
    });
    f.only({ do_layer_norm_before: true, enable_bias: true, layer_norm_elementwise_affine: true });
    if (f.count('word_embed_proj_dim', m.hiddenSize) !== m.hiddenSize)
      f.refuse(
        'word_embed_proj_dim',
        `must be hidden_size ${m.hiddenSize}: projected embeddings are not supported`,
        'use model.architecture',
      );
    return learned(f, withTraits(m, { mlpBias: true }), 2048, 2);
  },
  /** BLOOM: ALiBi instead of positions, a norm after the embedding. */
  bloom: (f) => {
    const m = gpt2Sizes(f, true);
    f.ignore('apply_residual_connection_post_layernorm offset_alibi masked_softmax_fusion unk_token_id');
    return withTraits(m, { outerParameters: 2 * m.hiddenSize, untrained: ['ALiBi'] }, { attentionBias: true });
  },
  /** Falcon with rotary positions. */
  falcon: (f) => {
    const m = decoder(f, {
      ...LAYER,
      epsilonKey: 'layer_norm_epsilon',
      gated: false,
      activation: 'gelu',
      activationKey: 'activation',
      tied: true,
      headSize: null,
      ffnKey: 'ffn_hidden_size',
    });
    const isNew = f.flag('new_decoder_architecture');
    const isParallel = f.flag('parallel_attn', true) || isNew;
    const isMultiQuery = f.flag('multi_query', true);
    const groups = f.count(['num_kv_heads', 'n_head_kv'], m.attentionHeads);
    const norms = f.count('num_ln_in_parallel_attn', isNew ? 2 : 1);
    if (norms > 2) f.refuse('num_ln_in_parallel_attn', 'must be 1 or 2', 'copy it from the model', norms);
    const bias = f.flag('bias');
    f.ignore('alibi');
    return withTraits(
      { ...m, kvHeads: isNew ? groups : isMultiQuery ? 1 : m.attentionHeads },
      { normsPerBlock: isParallel ? norms : 2, ...(bias && { mlpBias: true }), untrained: PARALLEL },
      bias ? { attentionBias: true } : {},
    );
  },
  /** GPT-OSS: a learned sink per head, a window in every second layer, clamped activations, biases everywhere. */
  gpt_oss: (f) => {
    if (f.number('swiglu_limit', 7) !== 7) f.only({ swiglu_limit: 7 });
    if (f.number('swiglu_alpha', 1.702) !== 1.702) f.only({ swiglu_alpha: 1.702 });
    f.ignore('experts_per_token num_experts_per_token hidden_act');
    return decoder(f, {
      theta: 150_000,
      ropeScaling: GPT_OSS_ROPE,
      epsilon: 1e-5,
      kvHeads: 8,
      headSize: 64,
      windowed: (layer) => layer % 2 === 0,
      window: 128,
      mixture: { sizeKey: 'intermediate_size', keys: LOCAL_EXPERTS, experts: 128, perToken: 4 },
      traits: { activation: 'clamped-swiglu', expertBias: true, routerBias: true },
      fields: { attentionSinks: true, attentionBias: f.flag('attention_bias', true) },
    });
  },
};
