import type { AppliedLimit, Limits } from './applied-limit';
import { neededToStart, type QuotaNeed } from './need';

/** What live jobs and warm pools hold, by quota name; a pool that is not named holds nothing. */
export type Usage = ReadonlyMap<string, number>;

/** Whether a limit is enough; `unknown` when it could not be read. */
export type QuotaVerdict = 'enough' | 'short' | 'unknown';

/** A need beside the account's limit and what is in use, in the quota's own unit. */
export interface QuotaRow extends QuotaNeed {
  /** null: not known. */
  limit: number | null;
  /** null: not looked at, or a limit on each job alone. */
  inUse: number | null;
  verdict: QuotaVerdict;
  /** Why it is short or not known; '' when there is enough. */
  reason: string;
}

/** The deploy's gate: what is needed against the applied limit, whatever is in use now. */
export function judgeForDeploy(needs: readonly QuotaNeed[], limits: Limits): QuotaRow[] {
  return needs.map((need) => judge(need, limits.get(need.name), null));
}

/**
 * The launch's gate: what is needed against what is free.
 * @param usage what is in use; `unknown` says why it could not be read
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

/** `refuse`: above a limit, waiting does not help. `wait`: above what is free. `unknown`: a limit could not be read. */
export type LaunchOutcome = 'start' | 'wait' | 'refuse' | 'unknown';

/** What a launch may do, given its rows (docs/decisions/0007-where-sources-differ.md, "quota: refused or queued"). */
export function launchOutcome(rows: readonly QuotaRow[]): LaunchOutcome {
  const needed = neededToStart(rows);
  if (needed.some((row) => row.limit !== null && row.needed > row.limit)) return 'refuse';
  if (needed.some((row) => row.verdict === 'short')) return 'wait';
  return needed.some((row) => row.verdict === 'unknown') ? 'unknown' : 'start';
}

/** Rows whose limit is not enough. */
export const shortRows = (rows: readonly QuotaRow[]): QuotaRow[] => rows.filter((row) => row.verdict === 'short');

/** Free units of a pool; usage above the limit (seen in real accounts) reads as nothing free. */
export const freeOf = (limit: number, inUse: number): number => Math.max(0, limit - inUse);

function judge(need: QuotaNeed, limit: AppliedLimit | undefined, inUse: number | null): QuotaRow {
  if (!limit || 'unknown' in limit)
    return { ...need, limit: null, inUse, verdict: 'unknown', reason: limit?.unknown ?? 'the limit was not read' };
  const row = { ...need, code: need.code ?? limit.code, limit: limit.value, inUse };
  if (need.needed > limit.value)
    return { ...row, verdict: 'short', reason: `needs ${need.needed}, the limit is ${limit.value}` };
  const free = freeOf(limit.value, inUse ?? 0);
  if (need.needed > free) return { ...row, verdict: 'short', reason: `needs ${need.needed}, ${free} are free` };
  return { ...row, verdict: 'enough', reason: '' };
}

function withoutUsage(need: QuotaNeed, limit: AppliedLimit | undefined, why: string): QuotaRow {
  const row = judge(need, limit, null);
  return row.verdict === 'enough' ? { ...row, verdict: 'unknown', reason: `what is in use is not known: ${why}` } : row;
}
