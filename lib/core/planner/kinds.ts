import { embeddingParameters } from '../catalog/model/parameters';
import type { LayoutInput } from './layout';
import { meanLayerParameters } from './model-size';

/** A layout in which all blocks are of one kind, and that kind's share of the blocks. */
interface LayoutOfKind {
  share: number;
  layout: LayoutInput;
}

/**
 * Splits a model with different kinds of blocks (dense layers before those with experts, windows in every second layer) into one layout per
 * kind.
 */
export function kindsOf(l: LayoutInput): LayoutOfKind[] {
  // A search calls this for every layout, so models with uniform blocks are not copied.
  if (!l.model.kinds) return [{ share: 1, layout: l }];
  const { kinds, ...model } = l.model;
  return kinds.map(({ layers, block }) => ({
    share: layers / model.layers,
    // Options that a kind does not have must not be inherited from the most common kind.
    layout: { ...l, model: { ...model, ...NO_OPTIONS, ...block } },
  }));
}

const NO_OPTIONS = {
  valueHeadSize: undefined,
  sharedFfn: undefined,
  sharedGate: undefined,
  window: undefined,
  latent: undefined,
  expertBiases: undefined,
  recurrence: undefined,
  gatedAttention: undefined,
  attention: undefined,
  scored: undefined,
  streams: undefined,
  expertHidden: undefined,
};

/** The value of `of` for the kind of block that needs most. */
export const mostOfKinds = (l: LayoutInput, of: (layout: LayoutInput) => number): number =>
  Math.max(...kindsOf(l).map(({ layout }) => of(layout)));

/** Number of blocks of the fullest pipeline stage, and of the last one, which also has the head. */
interface StageLayers {
  most: number;
  last: number;
}

/** Megatron and similar libraries give every stage the same number of blocks; nanotron also counts the head, by its cost. */
export function stageLayers(l: LayoutInput): StageLayers {
  const { layers } = l.model;
  const even = Math.ceil(layers / l.pipeline);
  if (l.pipeline === 1) return { most: layers, last: layers };
  const most = l.stack === 'nanotron' ? Math.max(even, balanced(l)) : even;
  return { most, last: Math.max(1, layers - most * (l.pipeline - 1)) };
}

function balanced(l: LayoutInput): number {
  const headInBlocks = embeddingParameters(l.model) / meanLayerParameters(l.model);
  const share = Math.round((l.model.layers + headInBlocks) / l.pipeline);
  return Math.min(share, Math.floor((l.model.layers - 1) / (l.pipeline - 1)));
}
