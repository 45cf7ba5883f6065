import type { ConfigFields } from '../config-fields';
import { allBut, never } from '../config-window';
import type { ModelShape } from '../shape';
import { attentionBiasOf, type Decoder, decoder, EXPERTS, type Family, mixtureOf, withTraits } from './decoder';

/**
 * OLMo: norms without weights in the first version; from the second version on, norms after each sublayer and over all queries and keys.
 */

function olmoOf(f: ConfigFields, modelType: string, d: Decoder): ModelShape {
  const m = decoder(f, modelType, { windowed: never, ...d });
  const clips = f.number('clip_qkv', 0) !== 0;
  return withTraits(m, clips ? { untrained: ['clip_qkv'] } : {}, attentionBiasOf(f));
}

/** OLMo: Llama with norms without weights; files with `clip_qkv` are supported for parameter counts, not for training. */
export const olmo: Family = (f, modelType) =>
  olmoOf(f, modelType, { norm: 'constant', epsilonKey: 'layer_norm_eps', epsilon: 1e-5 });

const post = (m: ModelShape) => withTraits(m, { qkNorm: 'whole' }, { qkNorm: true, normPlacement: 'post' });

/** OLMo 2: norms after attention and MLP, QK norm over all heads. */
export const olmo2: Family = (f, modelType) => post(olmoOf(f, modelType, { epsilon: 1e-5 }));

const OLMO3: Decoder = { theta: 500_000, windowTheta: 'theta', epsilon: 1e-5, windowed: allBut(4), window: 4096 };

/** OLMo 3: OLMo 2 with a window in three of four layers, whose positions are never scaled (https://arxiv.org/abs/2512.13961). */
export const olmo3: Family = (f, modelType) => post(olmoOf(f, modelType, OLMO3));

const mixture = (f: ConfigFields, m: ModelShape, experts: number, perToken: number) =>
  mixtureOf(f, m.layers, {
    sizeKey: 'intermediate_size',
    keys: EXPERTS,
    experts,
    perToken,
    routing: { normalise: f.flag('norm_topk_prob') },
  });

/** OLMoE: pre-norms, QK norm over all heads, 64 experts in each layer. */
export const olmoe: Family = (f, modelType) => {
  const m = olmoOf(f, modelType, { epsilon: 1e-5 });
  return withTraits(m, { qkNorm: 'whole' }, { qkNorm: true, ...mixture(f, m, 64, 8) });
};

/** FlexOlmo: OLMo 2's norms with seven experts in each layer. */
export const flexOlmo: Family = (f, modelType) => {
  const m = olmoOf(f, modelType, { theta: 500_000 });
  return { ...post(m), ...mixture(f, m, 7, 5) };
};
