import type { Config, ConfigFields } from '../config-fields';
import { allBut, layersWhere, never } from '../config-window';
import { hasWindow, headSizeOf } from '../parameters';
import type { DifferingLayers, ModelShape } from '../shape';
import { attentionBiasOf, capOf, type Decoder, decoder, type Families, mixtureOf, withTraits } from './decoder';

/** Gemma: norm weights are offsets from one; embeddings are scaled by sqrt(hidden_size) and tied. */

const GEMMA: Decoder = { tied: true, headSize: 256, kvHeads: 4, norm: 'rms-offset', activation: 'gelu-tanh' };

function gemmaOf(f: ConfigFields, d: Decoder) {
  const m = decoder(f, { activationKey: 'hidden_activation', ...GEMMA, ...d });
  f.only({ use_bidirectional_attention: false });
  f.ignore('hidden_act hidden_activation');
  return { ...m, embeddingScale: Math.sqrt(m.hiddenSize), ...attentionBiasOf(f) };
}

/** Scale of attention scores, and soft caps of scores and logits. */
function caps(f: ConfigFields, attention: number, final: number) {
  const attentionCap = capOf(f, 'attn_logit_softcapping', attention);
  const finalCap = capOf(f, 'final_logit_softcapping', final);
  const logitSoftcap = { ...(attentionCap && { attention: attentionCap }), ...(finalCap && { final: finalCap }) };
  return {
    traits: { attentionScale: f.count('query_pre_attn_scalar', 256) ** -0.5 },
    fields: Object.keys(logitSoftcap).length > 0 ? { logitSoftcap } : {},
  };
}

/** Gemma 4's tables of embeddings for each layer: parameters of a block, of its norm, and of the tables with their projection. */
function perLayerInputs(f: ConfigFields, m: ModelShape) {
  const size = f.count('hidden_size_per_layer_input', 256, 0);
  const rows = f.count('vocab_size_per_layer_input', 262_144);
  if (size === 0) return {};
  return {
    blockParameters: 2 * m.hiddenSize * size + m.hiddenSize,
    outerParameters: m.layers * size * (rows + m.hiddenSize) + size,
    untrained: ['embeddings of each layer'],
  };
}

/** Size and number of the key heads of layers without a window: with keys of their own, or of each layer as transformers saves them. */
function globalHeads(f: ConfigFields, m: ModelShape, sharesProjection: boolean): { headSize: number; kvHeads: number } {
  const globalKvHeads = f.optionalCount('num_global_key_value_heads');
  const headSize = f.count('global_head_dim', 512);
  if (f.isNull('per_layer_config')) return { headSize: headSizeOf(m), kvHeads: m.kvHeads };
  const given = f.section('per_layer_config') ?? {};
  const saved = Object.values(given) as Config[];
  const isFull = (layer: number) => !hasWindow(m.slidingWindow, layer);
  const areFull = Object.keys(given).every((layer) => isFull(Number(layer)));
  const isWhole = areFull && saved.length === layersWhere(m.layers, isFull).length;
  const [first = {}, ...others] = saved;
  if (saved.length > 0 && !(isWhole && others.every((layer) => JSON.stringify(layer) === JSON.stringify(first))))
    f.refuse('per_layer_config', 'must be the same for all layers without a window', 'use model.architecture');
  const kvHeads = saved.length === 0 && sharesProjection ? globalKvHeads : first.num_key_value_heads;
  return { headSize: Number(first.head_dim ?? headSize), kvHeads: Number(kvHeads ?? m.kvHeads) };
}

/** Layers without a window, with heads of their own size, and the last layers, which reuse earlier keys and values. */
function gemma4Layers(f: ConfigFields, m: ModelShape): DifferingLayers[] {
  const { attentionHeads: heads, hiddenSize: hidden } = m;
  const isWide = f.flag('use_double_wide_mlp');
  const hasMixture = f.flag('enable_moe_block');
  const sharesProjection = f.flag('attention_k_eq_v');
  const full = globalHeads(f, m, sharesProjection);
  const windowed = { headSize: headSizeOf(m), kvHeads: m.kvHeads };
  const firstShared = m.layers - f.count('num_kv_shared_layers', 0, 0);
  const kind = (isFull: boolean, isShared: boolean): DifferingLayers => {
    const { headSize, kvHeads } = isFull ? full : windowed;
    const projections = isShared ? 0 : isFull && sharesProjection ? 1 : 2;
    const norms = (isShared ? 1 : 2) * headSize - 2 * windowed.headSize;
    const biases = (heads + projections * kvHeads) * headSize;
    return {
      layers: layersWhere(
        m.layers,
        (layer) => hasWindow(m.slidingWindow, layer) !== isFull && layer >= firstShared === isShared,
      ),
      block: {
        headSize,
        kvHeads,
        attention: hidden * headSize * (2 * heads + projections * kvHeads),
        ...(isShared && isWide && { [hasMixture ? 'sharedFfn' : 'ffn']: 2 * m.ffnHiddenSize }),
      },
      small: norms + (m.attentionBias ? biases - (heads + 2 * windowed.kvHeads) * windowed.headSize : 0),
    };
  };
  return [kind(true, false), kind(true, true), kind(false, true), kind(false, false)];
}

/** Experts beside a dense feed-forward block, each with norms of its own, and a router with scales. */
function gemma4Experts(f: ConfigFields, m: ModelShape): ModelShape {
  if (!f.flag('enable_moe_block')) {
    f.ignore('num_experts top_k_experts moe_intermediate_size');
    return m;
  }
  const mixture = mixtureOf(f, m.layers, { perTokenKeys: ['top_k_experts'] });
  const traits = {
    sharedFfnHiddenSize: m.ffnHiddenSize,
    normsPerBlock: 7,
    mixtureParameters: m.hiddenSize + (mixture.experts ?? 0),
    untrained: ['experts beside a dense block'],
  };
  return withTraits(m, traits, { ...mixture, sharedExperts: 1 });
}

/** Gemma 1 to 4, and VaultGemma. */
export const GEMMA_FAMILIES: Families = {
  /** Gemma: no window, RMSNorm with weights around zero, embeddings scaled by the root of the hidden size. */
  gemma: (f) => {
    const m = gemmaOf(f, { kvHeads: 16, windowed: never, activationKey: 'hidden_act' });
    // The first configurations say gelu but mean its tanh approximation.
    return m.family?.activation === 'gelu' ? withTraits(m, { activation: 'gelu-tanh' }) : m;
  },
  /** Gemma 2: alternating windows, sandwich norms, soft caps on attention and logits. */
  gemma2: (f) => {
    const m = gemmaOf(f, { windowed: (layer) => layer % 2 === 0, window: 4096 });
    f.ignore('cache_implementation');
    f.only({ sliding_window_size: m.slidingWindow?.size });
    const { traits, fields } = caps(f, 50, 30);
    return withTraits(m, traits, { ...fields, normPlacement: 'sandwich' });
  },
  /** Gemma 3 text: five layers with a window followed by one without, QK norm, a separate RoPE base in layers with a window. */
  gemma3_text: (f) => {
    const period = f.count(['sliding_window_pattern', '_sliding_window_pattern'], 6);
    const m = gemmaOf(f, {
      theta: 1_000_000,
      windowTheta: 10_000,
      windowed: allBut(period),
      window: 4096,
      // The text_config of larger models omits both.
      heads: 8,
      vocabulary: 262_208,
    });
    f.only({ attn_logit_softcapping: undefined });
    const { traits, fields } = caps(f, 0, 0);
    return withTraits(m, traits, { ...fields, normPlacement: 'sandwich', qkNorm: true });
  },
  /** Gemma 4 text: windows in five of six layers, larger heads in the others, normed values; optionally experts, embeddings of each layer. */
  gemma4_text: (f) => {
    const layers = f.layers();
    if (f.perLayer('layer_types', layers)?.at(-1) === 'sliding_attention')
      f.refuse('layer_types', 'must end with full_attention', 'correct the list');
    const d = {
      theta: 1_000_000,
      windowTheta: 10_000,
      // The last layer never has a window.
      windowed: (layer: number) => allBut(6)(layer) && layer !== layers - 1,
      window: 512,
      activationKey: 'hidden_activation',
    };
    const m = decoder(f, { ...GEMMA, norm: 'rms', ...d });
    // Text is causal; vision tokens are not part of this model.
    if (f.text('use_bidirectional_attention', 'vision') !== 'vision') f.only({ use_bidirectional_attention: 'vision' });
    f.ignore('expert_intermediate_size');
    const { traits, fields } = caps(f, 0, 0);
    const shape = gemma4Experts(
      f,
      withTraits(m, { ...traits, attentionScale: 1 }, { ...fields, ...attentionBiasOf(f) }),
    );
    return withTraits(
      { ...shape, embeddingScale: Math.sqrt(m.hiddenSize), normPlacement: 'sandwich', qkNorm: true },
      { differing: gemma4Layers(f, shape), ...perLayerInputs(f, m), untrained: ['layers with heads of another size'] },
    );
  },
  /** VaultGemma: Gemma 2 with norms only before attention and MLP. */
  vaultgemma: (f) => {
    const m = gemmaOf(f, { windowed: (layer) => layer % 2 === 0, window: 4096 });
    const { traits, fields } = caps(f, 50, 30);
    return withTraits(m, traits, fields);
  },
};
