/** One assumption and what an account said about it. */
export interface VerifyRow {
  readonly level: string;
  /** Anchor in docs/assumptions.md. */
  readonly assumption: string;
  readonly claim: string;
  readonly verdict: 'holds' | 'differs' | 'unknown';
  readonly expected: string;
  readonly seen: string;
  readonly ifWrong: string;
  readonly seconds: number;
}

/** What the page of `slipway verify` shows. */
export interface VerifyReport {
  readonly environment: string;
  readonly region: string;
  /** Masked. */
  readonly account: string;
  readonly level: string;
  /** Whether an embedded AWS answered instead of AWS. */
  readonly embedded: boolean;
  readonly startedAt: string;
  readonly costUsd: number;
  readonly rows: readonly VerifyRow[];
  /** What could not be cleaned up. */
  readonly left: readonly string[];
}
