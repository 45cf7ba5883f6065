/** One assumption and its result in an account. */
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

/** The data of the page of `slipway verify`. */
export interface VerifyReport {
  readonly environment: string;
  readonly region: string;
  /** Masked account id. */
  readonly account: string;
  readonly level: string;
  /** Whether the AWS emulator was used instead of AWS. */
  readonly embedded: boolean;
  readonly startedAt: string;
  readonly costUsd: number;
  readonly rows: readonly VerifyRow[];
  /** Resources that could not be cleaned up. */
  readonly left: readonly string[];
}
