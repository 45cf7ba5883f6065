import type { ConfigFields } from '../config-fields';
import { allBut, never } from '../config-window';
import { attentionBiasOf, capOf, type Decoder, decoder, type Family, withTraits } from './decoder';

/** Gemma: norm weights are offsets from one; embeddings are scaled by sqrt(hidden_size) and tied. */

const GEMMA: Decoder = {
  tied: true,
  headSize: 256,
  kvHeads: 4,
  norm: 'rms-offset',
  activation: 'gelu-tanh',
};

function gemmaOf(f: ConfigFields, modelType: string, d: Decoder) {
  const m = decoder(f, modelType, { activationKey: 'hidden_activation', ...GEMMA, ...d });
  f.only('use_bidirectional_attention', false);
  f.ignore('hidden_act', 'hidden_activation');
  return { ...m, embeddingScale: Math.sqrt(m.hiddenSize), ...attentionBiasOf(f) };
}

/** Gemma: no window, RMSNorm with weights around zero, embeddings scaled by the root of the hidden size. */
export const gemma: Family = (f, modelType) => {
  const m = gemmaOf(f, modelType, { kvHeads: 16, windowed: never, activationKey: 'hidden_act' });
  // The first configurations say gelu but mean its tanh approximation.
  return m.family?.activation === 'gelu' ? withTraits(m, { activation: 'gelu-tanh' }) : m;
};

/** Scale of attention scores, and soft caps of scores and logits. */
function caps(f: ConfigFields, attention: number, final: number) {
  const attentionCap = capOf(f, 'attn_logit_softcapping', attention);
  const finalCap = capOf(f, 'final_logit_softcapping', final);
  const logitSoftcap = { ...(attentionCap && { attention: attentionCap }), ...(finalCap && { final: finalCap }) };
  return {
    traits: { attentionScale: f.number('query_pre_attn_scalar', 256) ** -0.5 },
    fields: Object.keys(logitSoftcap).length > 0 ? { logitSoftcap } : {},
  };
}

/** Gemma 2: alternating windows, sandwich norms, soft caps on attention and logits. */
export const gemma2: Family = (f, modelType) => {
  const m = gemmaOf(f, modelType, { windowed: (layer) => layer % 2 === 0, window: 4096 });
  f.ignore('cache_implementation');
  f.only('sliding_window_size', m.slidingWindow?.size);
  const { traits, fields } = caps(f, 50, 30);
  return withTraits(m, traits, { ...fields, normPlacement: 'sandwich' });
};

/** Gemma 3 text: five layers with a window followed by one without, QK norm, a separate RoPE base in layers with a window. */
export const gemma3: Family = (f, modelType) => {
  const period = f.count(['sliding_window_pattern', '_sliding_window_pattern'], 6);
  const m = gemmaOf(f, modelType, {
    theta: 1_000_000,
    windowTheta: 10_000,
    windowed: allBut(period),
    window: 4096,
    // The text_config of larger models omits both.
    heads: 8,
    vocabulary: 262_208,
  });
  f.only('attn_logit_softcapping', undefined);
  const { traits, fields } = caps(f, 0, 0);
  return withTraits(m, traits, { ...fields, normPlacement: 'sandwich', qkNorm: true });
};

/** VaultGemma: Gemma 2 with norms only before attention and MLP. */
export const vaultGemma: Family = (f, modelType) => {
  const m = gemmaOf(f, modelType, { windowed: (layer) => layer % 2 === 0, window: 4096 });
  const { traits, fields } = caps(f, 50, 30);
  return withTraits(m, traits, fields);
};
