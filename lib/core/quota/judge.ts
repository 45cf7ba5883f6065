import type { AppliedLimit, Limits } from './applied-limit';
import { neededToStart, type QuotaNeed } from './need';

/** Usage of live jobs and warm pools by quota name; a missing quota has no usage. */
export type Usage = ReadonlyMap<string, number>;

/** Whether a limit is enough; `unknown` when it could not be read. */
export type QuotaVerdict = 'enough' | 'short' | 'unknown';

/** A need with the account's limit and the current usage, in the unit of the quota. */
export interface QuotaRow extends QuotaNeed {
  /** null = not known. */
  limit: number | null;
  /** The limit is AWS's default, because no value was ever applied. */
  isDefault?: true;
  /** null = not read, or a limit per job. */
  inUse: number | null;
  verdict: QuotaVerdict;
  /** Reason why it is short or unknown; '' when there is enough. */
  reason: string;
}

/** Check at deployment: the need against the applied limit, independent of current usage. */
export function judgeForDeploy(needs: readonly QuotaNeed[], limits: Limits): QuotaRow[] {
  return needs.map((need) => judge(need, limits.get(need.name), null));
}

/**
 * Check at launch: the need against the free amount.
 * @param usage current usage; `unknown` is the reason why it could not be read
 */
export function judgeForLaunch(
  needs: readonly QuotaNeed[],
  limits: Limits,
  usage: Usage | { unknown: string },
): QuotaRow[] {
  return needs.map((need) => {
    if (need.kind === 'per-job') return judge(need, limits.get(need.name), null);
    if ('unknown' in usage) return withoutUsage(need, limits.get(need.name), usage.unknown);
    return judge(need, limits.get(need.name), usage.get(need.name) ?? 0);
  });
}

/** `refuse`: above a limit, so waiting does not help. `wait`: above the free amount. `unknown`: a limit could not be read. */
export type LaunchOutcome = 'start' | 'wait' | 'refuse' | 'unknown';

/** The outcome of a launch for the given rows (docs/decisions/0007-where-sources-differ.md, "quota: refused or queued"). */
export function launchOutcome(rows: readonly QuotaRow[]): LaunchOutcome {
  const needed = neededToStart(rows);
  if (needed.some((row) => row.limit !== null && row.needed > row.limit)) return 'refuse';
  if (needed.some((row) => row.verdict === 'short')) return 'wait';
  return needed.some((row) => row.verdict === 'unknown') ? 'unknown' : 'start';
}

/** Rows whose limit is not enough. */
export const shortRows = (rows: readonly QuotaRow[]): QuotaRow[] => rows.filter((row) => row.verdict === 'short');

/** Free units of a pool; 0 if usage exceeds the limit, which occurs in real accounts. */
export const freeOf = (limit: number, inUse: number): number => Math.max(0, limit - inUse);

function judge(need: QuotaNeed, limit: AppliedLimit | undefined, inUse: number | null): QuotaRow {
  if (!limit || 'unknown' in limit)
    return { ...need, limit: null, inUse, verdict: 'unknown', reason: limit?.unknown ?? 'the limit was not read' };
  const ofAws = limit.isDefault && { isDefault: limit.isDefault };
  const row = { ...need, code: need.code ?? limit.code, limit: limit.value, ...ofAws, inUse };
  if (need.needed > limit.value)
    return { ...row, verdict: 'short', reason: `needs ${need.needed}, the limit is ${limit.value}` };
  const free = freeOf(limit.value, inUse ?? 0);
  if (need.needed > free) return { ...row, verdict: 'short', reason: `needs ${need.needed}, ${free} are free` };
  return { ...row, verdict: 'enough', reason: '' };
}

function withoutUsage(need: QuotaNeed, limit: AppliedLimit | undefined, why: string): QuotaRow {
  const row = judge(need, limit, null);
  return row.verdict === 'enough' ? { ...row, verdict: 'unknown', reason: `usage is not known: ${why}` } : row;
}
