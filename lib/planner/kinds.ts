import type { LayoutInput } from './layout';

/** A layout as if all its blocks were of one kind, and the share of the blocks that are. */
export interface LayoutOfKind {
  share: number;
  layout: LayoutInput;
}

/** Blocks that differ (dense layers before those with experts, windows in every second layer), each as a layout of its own. */
export function kindsOf(l: LayoutInput): LayoutOfKind[] {
  // A search asks this for every layout: models whose blocks are alike are not copied.
  if (!l.model.kinds) return [{ share: 1, layout: l }];
  const { kinds, ...model } = l.model;
  return kinds.map(({ layers, block }) => ({
    share: layers / model.layers,
    // Fields that a kind does not have must not stay those of the most common one.
    layout: { ...l, model: { ...model, ...NO_OPTIONS, ...block } },
  }));
}

const NO_OPTIONS = {
  valueHeadSize: undefined,
  sharedFfn: undefined,
  window: undefined,
  latent: undefined,
  expertBiases: undefined,
  recurrence: undefined,
  gatedAttention: undefined,
};

/** What `of` says of the block that needs most. */
export const mostOfKinds = (l: LayoutInput, of: (layout: LayoutInput) => number): number =>
  Math.max(...kindsOf(l).map(({ layout }) => of(layout)));
