import { findPrice, HOURS_A_MONTH } from '../../../core/catalog/prices/prices';
import type { VerifyReport } from '../../../report/render-verify-page';
import type { Level, ProbeResult } from './probe';
import { MAX_INSTANCE_SECONDS } from './train/train-jobs';

/** Result of one call of `slipway verify`: the file in `.slipway/verify/`, which can be committed under docs/evidence/. */
export interface VerifyRecord extends Omit<VerifyReport, 'rows'> {
  readonly schema: 1;
  readonly level: Level;
  endedAt?: string;
  readonly probes: ProbeResult[];
  /** Billed cost if the services report it, otherwise an upper bound. */
  costUsd: number;
  left: string[];
}

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

/** Maximum duration of the all-reduce job of level `efa` on its two hosts, seconds. */
export const EFA_SECONDS = 1800;

/** Cost of S3, DynamoDB and Lambda requests at level `deploy`, USD. */
const REQUESTS_USD = 0.1;
/** Hours that the small environment exists, including failed and repeated deployments. */
const DEPLOY_HOURS = 2;

const HOUR_SECONDS = 3600;

/**
 * The maximum cost of each level, in USD; undefined when the price of the instance type is not known.
 * @param standingUsdPerMonth standing cost of the environment of level `deploy`
 */
export function mostCost(
  levels: readonly Level[],
  region: string,
  types: { cpu: string; efa?: string },
  standingUsdPerMonth: number,
) {
  const perSecond = (type: string | undefined) => {
    const price = type && findPrice(type, region)?.usdPerHour;
    return price ? price / HOUR_SECONDS : undefined;
  };
  const times = (price: number | undefined, seconds: number) => (price === undefined ? undefined : price * seconds);
  const most: Record<Level, () => number | undefined> = {
    read: () => 0,
    deploy: () => (standingUsdPerMonth / HOURS_A_MONTH) * DEPLOY_HOURS + REQUESTS_USD,
    train: () => times(perSecond(types.cpu), MAX_INSTANCE_SECONDS),
    efa: () => times(perSecond(types.efa), 2 * EFA_SECONDS),
  };
  return levels.map((level) => ({ level, usd: most[level]() }));
}
