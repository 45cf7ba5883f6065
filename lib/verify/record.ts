import type { Level } from './assumption';
import type { ProbeResult } from './probe';

/** What one call of `slipway verify` found, as it lies in `.slipway/verify/` and can be committed under docs/evidence/. */
export interface VerifyRecord {
  readonly schema: 1;
  /** `...` and the last four digits. */
  readonly account: string;
  readonly region: string;
  readonly environment: string;
  readonly level: Level;
  /** Whether the endpoints were those of the embedded AWS or of another stand-in, and not AWS's own. */
  readonly embedded: boolean;
  readonly startedAt: string;
  endedAt?: string;
  readonly probes: ProbeResult[];
  /** What was billed, as far as the services say it; an upper bound where they do not. */
  costUsd: number;
  /** What could not be cleaned up, in words. */
  left: string[];
}

/** The last four digits of an account id. */
export const maskedAccount = (account: string): string => `...${account.slice(-4)}`;

/** Answered probes of an earlier record, which need not run again. */
export const answeredIn = (record: VerifyRecord | undefined): Map<string, ProbeResult> =>
  new Map((record?.probes ?? []).filter(({ verdict }) => verdict !== 'unknown').map((result) => [result.id, result]));

/** Problems of a text that `--resume` was given; none when it is a record of this account, Region and environment. */
export function recordProblems(
  value: unknown,
  place: Pick<VerifyRecord, 'account' | 'region' | 'environment'>,
): string[] {
  const record = value as Partial<VerifyRecord> | null;
  if (record?.schema !== 1 || !Array.isArray(record.probes)) return ['must be a record of slipway verify'];
  return (['account', 'region', 'environment'] as const)
    .filter((key) => record[key] !== place[key])
    .map((key) => `must be of ${key} ${place[key]}, got ${String(record[key])}`);
}

/** How many probes ended with each verdict. */
export function counts(probes: readonly ProbeResult[]): { holds: number; differs: number; unknown: number } {
  const found = { holds: 0, differs: 0, unknown: 0 };
  for (const { verdict } of probes) found[verdict]++;
  return found;
}
