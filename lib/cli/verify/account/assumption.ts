/** Levels of `slipway verify`; each level includes the previous ones. */
export const LEVELS = ['read', 'deploy', 'train', 'efa'] as const;
/** Level of `slipway verify` whose probe tests an assumption. */
export type Level = (typeof LEVELS)[number];

/** The basis of an assumption, from the strongest to the weakest. */
export type Basis =
  /** Stated in AWS's documentation, service model or source code. */
  | 'documented'
  /** Shown by a public issue, sample or measurement. */
  | 'reported'
  /** Follows from documented facts, but no source states it. */
  | 'inferred'
  /** Plausible, but without evidence. */
  | 'guessed';

/** Evidence that a successful run on the AWS emulator provides for the assumption. */
export type EmbeddedEvidence =
  /** None: Slipway's emulator implements the same assumption. */
  | 'repeats it'
  /** Some: it was tested against MiniStack, botocore's model or real processes, which are independent of Slipway. */
  | 'independent'
  /** None: the emulator does not implement it. */
  | 'not modelled';

/** An assumption about AWS, with the parts of Slipway that depend on it and the level that tests it. */
export interface Assumption {
  /** Anchor in docs/assumptions.md; never changes once it is published. */
  readonly id: string;
  /** The assumption as one sentence. */
  readonly claim: string;
  readonly basis: Basis;
  /** Source: a URL, or a description of the evidence. */
  readonly source: string;
  /** Parts of Slipway that rely on it. */
  readonly usedBy: string;
  /** Consequences for users if it does not hold. */
  readonly ifWrong: string;
  readonly embedded: EmbeddedEvidence;
  /** Level whose probe tests it; absent = no probe can test it, and it remains open until it is observed. */
  readonly probe?: Level;
}

/** Assumptions about one subject, in the order of docs/assumptions.md. */
export interface AssumptionArea {
  readonly title: string;
  readonly assumptions: readonly Assumption[];
}
