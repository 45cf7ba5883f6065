import type { ConfigFields } from './config-fields';
import type { SlidingWindow } from './shape';

/** The sliding window of a config.json: its size in tokens and the layers that use it. */
export interface Windows {
  slidingWindow?: SlidingWindow;
  /** Layers with chunked attention. */
  chunked: number[];
}

/** Indices of the layers for which the predicate holds. */
export const layersWhere = (layers: number, holds: (layer: number) => boolean): number[] =>
  [...Array(layers).keys()].filter(holds);

/** True except for every `period`-th layer, starting with the last layer of the first period. */
export const allBut = (period: number) => (layer: number) => (layer + 1) % period !== 0;

function patternOf(layers: number, windowed: readonly number[]): SlidingWindow['pattern'] {
  if (windowed.length === layers) return 'all';
  const alternates = windowed.length === Math.ceil(layers / 2) && windowed.every((layer, i) => layer === 2 * i);
  return alternates && layers > 1 ? 'alternate' : [...windowed];
}

/** A value for each layer. */
export const layersOf = <T>(layers: number, value: (layer: number) => T): T[] => [...Array(layers).keys()].map(value);

/** `layer_types` of layers of which some have the named type, and the others full attention. */
export const typesOf = (layers: number, named: readonly number[], type: string): string[] =>
  layersOf(layers, (layer) => (named.includes(layer) ? type : 'full_attention'));

const TYPES = ['full_attention', 'sliding_attention', 'chunked_attention'];

/**
 * The layers with a sliding window and its size: from `layer_types`, or from the family's `rule` if that is missing. `size` is the default
 * window size.
 */
export function windowsOf(f: ConfigFields, layers: number, rule: (layer: number) => boolean, size?: number): Windows {
  const window = f.count('sliding_window', size ?? 0, 0);
  const types = f.perLayerOf('layer_types', layers, TYPES, 'use model.architecture');
  const windowed = layersWhere(layers, (layer) =>
    types ? types[layer] === 'sliding_attention' : window > 0 && rule(layer),
  );
  f.lists.set('layer_types', typesOf(layers, windowed, 'sliding_attention'));
  f.take('sliding_window', windowed.length > 0 && window > 0 ? window : null);
  if (types && windowed.length > 0 && window === 0)
    f.refuse('sliding_window', 'must be given for sliding_attention in layer_types', 'add it');
  return {
    ...(window > 0 && windowed.length > 0 && { slidingWindow: { size: window, pattern: patternOf(layers, windowed) } }),
    chunked: types ? layersWhere(layers, (layer) => types[layer] === 'chunked_attention') : [],
  };
}

/** All layers have a window. */
export const always = () => true;
/** No layer has a window, regardless of the file. */
export const never = () => false;
