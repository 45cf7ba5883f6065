import type { LayoutInput } from './layout';

/** A layout as if all its blocks were of one kind, and the share of the blocks that are. */
export interface LayoutOfKind {
  share: number;
  layout: LayoutInput;
}

/** Blocks that differ (dense layers before those with experts, windows in every second layer), each as a layout of its own. */
export function kindsOf(l: LayoutInput): LayoutOfKind[] {
  const { kinds, ...model } = l.model;
  if (!kinds) return [{ share: 1, layout: l }];
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
};

/** What `of` says of a block, in the mean over all blocks. */
export const meanOverKinds = (l: LayoutInput, of: (layout: LayoutInput) => number): number =>
  kindsOf(l).reduce((sum, { share, layout }) => sum + share * of(layout), 0);

/** What `of` says of the block that needs most. */
export const mostOfKinds = (l: LayoutInput, of: (layout: LayoutInput) => number): number =>
  Math.max(...kindsOf(l).map(({ layout }) => of(layout)));
