import type { ConfigFields } from '../config-fields';
import { always, never } from '../config-window';
import { attentionBiasOf, type Decoder, decoder, type Family, mixtureOf, withTraits } from './decoder';

/** Granite and derived families: multipliers of embeddings, attention scores, residuals and logits. */
export function multiplied(f: ConfigFields, d: Decoder) {
  const m = decoder(f, { windowed: never, ...d });
  return withTraits(
    m,
    {
      attentionScale: f.number('attention_multiplier', 1),
      residualScale: f.number('residual_multiplier', 1),
      logitScale: 1 / f.number('logits_scaling', 1),
      ...(f.flag('mlp_bias') && { mlpBias: true }),
    },
    { embeddingScale: f.number('embedding_multiplier', 1), ...attentionBiasOf(f) },
  );
}

/** Granite 3: Llama with multipliers of embeddings, attention, residuals and logits. */
export const granite: Family = (f) => multiplied(f, {});

const windowedDecoder: Decoder = { windowed: (layer) => layer % 4 !== 0, window: 128 };
const SWA_UNTRAINED = ['layer_rope_theta'];

/** Granite with attention sinks and a window in three of four layers. */
export const graniteSwa: Family = (f) => {
  const m = multiplied(f, { ...windowedDecoder, tied: true, epsilon: 1e-5, kvHeads: 4 });
  f.ignore('layer_rope_theta');
  return withTraits(m, { untrained: SWA_UNTRAINED }, { attentionSinks: true });
};

const mixed = (f: ConfigFields, d: Decoder) => {
  const m = multiplied(f, d);
  return {
    ...m,
    ...mixtureOf(f, m.layers, { sizeKey: 'intermediate_size', keys: ['num_local_experts'], experts: 8, perToken: 2 }),
  };
};

/** Granite MoE: Granite's multipliers with experts in each layer. */
export const graniteMoe: Family = (f) => mixed(f, {});

const shared = (f: ConfigFields, d: Decoder) => {
  const sharedFfnHiddenSize = f.count('shared_intermediate_size', 0, 0);
  const m = mixed(f, d);
  return sharedFfnHiddenSize > 0 ? withTraits(m, { sharedFfnHiddenSize }, { sharedExperts: 1 }) : m;
};

/** Granite MoE with a shared expert. */
export const graniteMoeShared: Family = (f) => shared(f, {});

/** Granite MoE with attention sinks and a window in three of four layers. */
export const graniteMoeSwa: Family = (f) => {
  const m = shared(f, windowedDecoder);
  f.ignore('layer_rope_theta');
  return withTraits(m, { untrained: SWA_UNTRAINED }, { attentionSinks: true });
};

/** HyperCLOVA X: Granite's multipliers, and norms after attention and MLP as well. */
export const hyperclovax: Family = (f) => {
  const m = multiplied(f, { windowed: always });
  return f.flag('use_post_norm', true) ? { ...m, normPlacement: 'sandwich' } : m;
};
