import type { ConfigFields } from '../config-fields';
import { layersWhere } from '../config-window';
import { hasWindow } from '../parameters';
import type { DifferingLayers, ModelShape, Recurrence } from '../shape';
import {
  biasedRouting,
  decoder,
  denseLayersOf,
  type Families,
  LOCAL_EXPERTS,
  leading,
  type Mixture,
  mixtureOf,
  ROUTED_EXPERTS,
  withTraits,
} from './decoder';
import { recurrentLayers } from './recurrent';

/** Linear attention with a fixed decay for each head (https://arxiv.org/abs/2501.08313, section 2.2), in blocks of positions. */
function lightning(f: ConfigFields, m: ModelShape): Recurrence {
  const size = m.headSize ?? m.hiddenSize / m.attentionHeads;
  const width = m.attentionHeads * size;
  return {
    parameters: 5 * m.hiddenSize * width,
    small: width,
    kept: 7 * width,
    flops: width * (4 * size + 4 * f.count('block_size', 256)),
  };
}

/** The layers with this number in a list of zeros and ones; undefined without the list. */
function marked(f: ConfigFields, key: string, layers: number, mark: number): number[] | undefined {
  const marks = f.perLayerOf(key, layers, [0, 1]);
  return marks && layersWhere(layers, (layer) => marks[layer] === mark);
}

/** Keys of MiMo's files that repeat others, or whose effect adds no parameters. */
const MIMO_UNREAD =
  'swa_rope_theta attention_chunk_size add_swa_attention_sink_bias add_full_attention_sink_bias attention_value_scale';

/** Families whose layers alternate between two kinds of attention. */
export const HYBRID_FAMILIES: Families = {
  /** MiniMax-Text-01 and M1: lightning attention in some layers, attention in the others, experts in all. */
  minimax: (f) => {
    for (const part of ['full_attn', 'linear_attn', 'mlp']) f.ignore(`${part}_alpha_factor ${part}_beta_factor`);
    f.only({ sliding_window: undefined });
    const mixture: Mixture = { sizeKey: 'intermediate_size', keys: LOCAL_EXPERTS, experts: 8, perToken: 2 };
    const m = decoder(f, { recurrent: true, theta: 1_000_000, kvHeads: 8, epsilon: 1e-5, mixture });
    const recurrence = { layers: recurrentLayers(f, m.layers, (layer) => layer % 2 === 1), of: lightning(f, m) };
    return withTraits(m, { recurrence, untrained: ['lightning attention'] });
  },
  /** MiMo-V2-Flash: in windowed layers twice the key heads and attention sinks; values are smaller than keys. */
  mimo_v2_flash: (f) => {
    const layers = f.layers();
    const inPattern = marked(f, 'hybrid_layer_pattern', layers, 1);
    const m = decoder(f, {
      ownPositions: true,
      kvHeads: 4,
      headSize: 192,
      epsilonKey: ['rms_norm_eps', 'layernorm_epsilon'],
      epsilon: 1e-5,
      windowed: (layer) => (inPattern ? inPattern.includes(layer) : layer !== 0 && (layer + 1) % 6 !== 0),
      window: 129,
    });
    // The other name is of the positions before the query alone.
    const before = f.optionalCount('sliding_window_size');
    const slidingWindow = m.slidingWindow && { ...m.slidingWindow, ...(before && { size: before + 1 }) };
    const given = marked(f, 'moe_layer_freq', layers, 0);
    const listed = denseLayersOf(f, layers, 1);
    const dense = given && !f.has('mlp_layer_types') ? leading(given) : listed;
    const routing = biasedRouting(f, f.count(ROUTED_EXPERTS, 256));
    const mixture = mixtureOf(f, layers, { keys: ROUTED_EXPERTS, experts: 256, perToken: 8, dense, routing });
    const valueHeadSize = f.count('v_head_dim', 128);
    f.only({
      swa_num_attention_heads: m.attentionHeads,
      swa_num_key_value_heads: 2 * m.kvHeads,
      swa_head_dim: m.headSize,
      swa_v_head_dim: valueHeadSize,
      n_shared_experts: undefined,
    });
    f.ignore(MIMO_UNREAD);
    const kind = (isWindowed: boolean): DifferingLayers => {
      const kvHeads = isWindowed ? 2 * m.kvHeads : m.kvHeads;
      const biases = f.flag('attention_bias')
        ? m.attentionHeads * (m.headSize ?? 0) + kvHeads * ((m.headSize ?? 0) + valueHeadSize)
        : 0;
      return {
        layers: layersWhere(layers, (layer) => hasWindow(m.slidingWindow, layer) === isWindowed),
        block: { kvHeads, valueHeadSize },
        small: biases + (isWindowed ? m.attentionHeads : 0),
      };
    };
    const differing = [kind(true), kind(false)];
    const untrained = ['attention with values smaller than keys', 'sinks of windowed layers alone'];
    return withTraits(
      { ...m, ...mixture, ...(slidingWindow && { slidingWindow }) },
      { differing, untrained, routedScaling: f.number('routed_scaling_factor', 1) },
    );
  },
};
