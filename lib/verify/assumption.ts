/** How far a probe goes; each level includes the ones before it. */
export const LEVELS = ['read', 'deploy', 'train', 'efa'] as const;
/** Level of `slipway verify` that decides an assumption. */
export type Level = (typeof LEVELS)[number];

/** What an assumption rests on, from the strongest to the weakest. */
export type Basis =
  /** AWS's documentation, service model or source code says it. */
  | 'documented'
  /** A public issue, sample or measurement of somebody else shows it. */
  | 'reported'
  /** It follows from documented facts, but no source states it. */
  | 'inferred'
  /** Nothing but plausibility supports it. */
  | 'guessed';

/** What a green run on the embedded AWS says about the assumption. */
export type EmbeddedEvidence =
  /** Nothing: our own emulator was written from the same assumption. */
  | 'repeats it'
  /** A little: MiniStack, botocore's model or real processes answer, which other people wrote. */
  | 'independent'
  /** Nothing: the embedded AWS has no such thing. */
  | 'not modelled';

/** Something that is taken to be true of AWS, with what depends on it and the probe that decides it. */
export interface Assumption {
  /** Anchor in docs/assumptions.md; never changes once it is published. */
  readonly id: string;
  /** What the product takes for granted, as one sentence. */
  readonly claim: string;
  readonly basis: Basis;
  /** Where it was read: a URL, or what was looked at. */
  readonly source: string;
  /** What in the product relies on it. */
  readonly usedBy: string;
  /** What users would see if it does not hold. */
  readonly ifWrong: string;
  readonly embedded: EmbeddedEvidence;
  /** Level whose probe answers it; absent: no probe can, and it stays open until somebody sees it happen. */
  readonly probe?: Level;
}

/** Assumptions about one subject, in the order of docs/assumptions.md. */
export interface AssumptionArea {
  readonly title: string;
  readonly assumptions: readonly Assumption[];
}
