import type { Level } from './assumption';
import type { ProbeResult } from './probe';

/** Result of one call of `slipway verify`: the file in `.slipway/verify/`, which can be committed under docs/evidence/. */
export interface VerifyRecord {
  readonly schema: 1;
  /** `...` and the last four digits. */
  readonly account: string;
  readonly region: string;
  readonly environment: string;
  readonly level: Level;
  /** Whether the endpoints were those of the AWS emulator or another substitute for AWS. */
  readonly embedded: boolean;
  readonly startedAt: string;
  endedAt?: string;
  readonly probes: ProbeResult[];
  /** Billed cost if the services report it, otherwise an upper bound. */
  costUsd: number;
  /** Descriptions of resources that could not be cleaned up. */
  left: string[];
}

/** The last four digits of an account id. */
export const maskedAccount = (account: string): string => `...${account.slice(-4)}`;

/** Results of an earlier record that need not be repeated. */
export const answeredIn = (record: VerifyRecord | undefined): Map<string, ProbeResult> =>
  new Map((record?.probes ?? []).filter(({ verdict }) => verdict !== 'unknown').map((result) => [result.id, result]));

/** Problems of the file given to `--resume`; empty for a record of this account, Region and environment. */
export function recordProblems(
  value: unknown,
  place: Pick<VerifyRecord, 'account' | 'region' | 'environment'>,
): string[] {
  const record = value as Partial<VerifyRecord> | null;
  if (record?.schema !== 1 || !Array.isArray(record.probes)) return ['must be a record of slipway verify'];
  return (['account', 'region', 'environment'] as const)
    .filter((key) => record[key] !== place[key])
    .map((key) => `must have ${key} ${place[key]}, got ${String(record[key])}`);
}

/** Number of probes by verdict. */
export function counts(probes: readonly ProbeResult[]): { holds: number; differs: number; unknown: number } {
  const found = { holds: 0, differs: 0, unknown: 0 };
  for (const { verdict } of probes) found[verdict]++;
  return found;
}
