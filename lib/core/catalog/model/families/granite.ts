import type { ConfigFields } from '../config-fields';
import { always, never } from '../config-window';
import { type Decoder, decoder, type Families, type Mixture } from './decoder';

/** Granite and derived families: multipliers of embeddings, attention scores, residuals and logits. */
export const multiplied = (f: ConfigFields, d: Decoder = {}) =>
  decoder(f, {
    windowed: never,
    biased: true,
    ...d,
    traits: {
      attentionScale: f.number('attention_multiplier', 1),
      residualScale: f.number('residual_multiplier', 1),
      logitScale: 1 / f.number('logits_scaling', 1),
      ...(f.flag('mlp_bias') && { mlpBias: true }),
      ...d.traits,
    },
    fields: { embeddingScale: f.number('embedding_multiplier', 1), ...d.fields },
  });

/** Attention sinks and a window in three of four layers. */
function windowed(f: ConfigFields): Decoder {
  f.ignore('layer_rope_theta');
  return {
    windowed: (layer) => layer % 4 !== 0,
    window: 128,
    traits: { untrained: ['layer_rope_theta'] },
    fields: { attentionSinks: true },
  };
}

/** Experts of Granite, by default. */
export const GRANITE_MIXTURE: Mixture = {
  sizeKey: 'intermediate_size',
  keys: ['num_local_experts'],
  experts: 8,
  perToken: 2,
};

const shared = (f: ConfigFields, { traits, ...d }: Decoder) => {
  const sharedFfnHiddenSize = f.count('shared_intermediate_size', 0, 0);
  const isShared = sharedFfnHiddenSize > 0;
  return multiplied(f, {
    ...d,
    mixture: { ...GRANITE_MIXTURE, ...(isShared && { sharedExperts: 1 }) },
    traits: { ...(isShared && { sharedFfnHiddenSize }), ...traits },
  });
};

/** Granite and derived families. */
export const GRANITE_FAMILIES: Families = {
  /** Granite 3: Llama with multipliers of embeddings, attention, residuals and logits. */
  granite: (f) => multiplied(f),
  /** Granite with attention sinks and a window in three of four layers. */
  granite_swa: (f) => multiplied(f, { ...windowed(f), tied: true, epsilon: 1e-5, kvHeads: 4 }),
  /** Granite MoE: Granite's multipliers with experts in each layer. */
  granitemoe: (f) => multiplied(f, { mixture: GRANITE_MIXTURE }),
  /** Granite MoE with a shared expert. */
  granitemoeshared: (f) => shared(f, {}),
  /** Granite MoE with attention sinks and a window in three of four layers. */
  granitemoe_swa: (f) => shared(f, windowed(f)),
  /** HyperCLOVA X: Granite's multipliers, and norms after attention and MLP as well. */
  hyperclovax: (f) =>
    multiplied(f, {
      windowed: always,
      fields: { ...(f.flag('use_post_norm', true) && { normPlacement: 'sandwich' }) },
    }),
};
