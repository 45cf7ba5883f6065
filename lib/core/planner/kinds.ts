import type { LayoutInput } from './layout';

/** A layout in which all blocks are of one kind, and that kind's share of the blocks. */
export interface LayoutOfKind {
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
