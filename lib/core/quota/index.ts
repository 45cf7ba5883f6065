import { LIVE_JOB_STATUSES } from '../catalog/job-statuses';
import { generalQuota, instanceQuota, type QuotaUsage } from '../catalog/quotas';
import { textTable } from '../config/formats/plain-text';
import { neededToStart, type Pool, type QuotaNeed, TOTALS } from './need';

export * from './need';

/** An applied limit from Service Quotas, or the reason why there is none. A limit that could not be read is never guessed. */
export type AppliedLimit =
  /** isDefault: no value was ever applied in the account, so that AWS's default is the limit. */
  | { value: number; code?: string; isDefault?: true }
  /** isAbsent: the service returned that there is no such quota, or no value for it. */
  | { unknown: string; isAbsent?: true };

/** Applied limits by quota name. */
export type Limits = ReadonlyMap<string, AppliedLimit>;

/** Input of GetServiceQuota for a SageMaker quota. */
export const quotaRequest = (QuotaCode: string) => ({ ServiceCode: 'sagemaker', QuotaCode });

/** The fields of the GetServiceQuota response that are used. */
interface QuotaAnswer {
  Quota?: { Value?: number; ErrorReason?: { ErrorMessage?: string } };
}

/** The limit in a GetServiceQuota response. */
export function limitOf(code: string, { Quota }: QuotaAnswer): AppliedLimit {
  if (Quota?.Value === undefined || Quota.ErrorReason)
    return { unknown: Quota?.ErrorReason?.ErrorMessage ?? 'Service Quotas returned no value' };
  return { value: Quota.Value, code };
}

/** Converts an error of Service Quotas to an unknown limit. */
export function unreadLimit(error: unknown): { unknown: string; isAbsent?: true } {
  const { name, message } = error as { name?: string; message?: string };
  if (name === 'NoSuchResourceException')
    return { unknown: 'the region has no such quota, or no value was ever applied', isAbsent: true };
  if (name === 'AccessDeniedException')
    return { unknown: `servicequotas:GetServiceQuota is not permitted (${message})` };
  return { unknown: `${name ?? 'error'}: ${message ?? String(error)}` };
}

/** Usage of live jobs and warm pools by quota name; a missing quota has no usage. */
export type Usage = ReadonlyMap<string, number>;

/** A need with the account's limit and the current usage, in the unit of the quota. */
export interface QuotaRow extends QuotaNeed {
  /** null = not known. */
  limit: number | null;
  /** The limit is AWS's default, because no value was ever applied. */
  isDefault?: true;
  /** null = not read, or a limit per job. */
  inUse: number | null;
  /** Whether a limit is enough; `unknown` when it could not be read. */
  verdict: 'enough' | 'short' | 'unknown';
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
    const limit = limits.get(need.name);
    if (need.kind === 'per-job') return judge(need, limit, null);
    if (!('unknown' in usage)) return judge(need, limit, usage.get(need.name) ?? 0);
    const row = judge(need, limit, null);
    if (row.verdict !== 'enough') return row;
    return { ...row, verdict: 'unknown', reason: `usage is not known: ${usage.unknown}` };
  });
}

/** `refuse`: above a limit, so waiting does not help. `wait`: above the free amount. `unknown`: a limit could not be read. */
type LaunchOutcome = 'start' | 'wait' | 'refuse' | 'unknown';

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

/** One SageMaker job or warm pool, from Describe. */
export interface JobInstances {
  kind: 'training' | 'processing';
  /** TrainingJobStatus or ProcessingJobStatus. */
  status: string;
  spot: boolean;
  instances: readonly { instanceType: string; count: number }[];
  /** WarmPoolStatus.Status of a job that has ended. */
  warmPoolStatus?: string;
}

/** A job uses its quota from the request on, even while it waits for capacity; `Stopping` is counted to be safe. */
const HOLDING: ReadonlySet<string> = new Set(LIVE_JOB_STATUSES);

/** Usage by quota name. Warm pools count against the training quota and their own quota (facts: "How SageMaker counts usage"). */
export function quotaUsage(jobs: readonly JobInstances[]): Map<string, number> {
  const used = new Map<string, number>();
  const add = (name: string, count: number) => used.set(name, (used.get(name) ?? 0) + count);
  for (const job of jobs) {
    const pool = poolOf(job);
    if (!pool) continue;
    for (const { instanceType, count } of job.instances) {
      for (const usage of pool.usages) add(instanceQuota(instanceType, usage).name, count);
      add(generalQuota(TOTALS[pool.total].across).name, count);
    }
  }
  return used;
}

function poolOf(job: JobInstances): { usages: QuotaUsage[]; total: Pool } | undefined {
  if (HOLDING.has(job.status)) {
    const usage = job.kind === 'processing' ? 'processing' : job.spot ? 'spot' : 'training';
    return { usages: [usage], total: usage };
  }
  return job.warmPoolStatus === 'Available' ? { usages: ['training', 'warm-pool'], total: 'training' } : undefined;
}

/** The rows as a text table; short and unknown ones first. */
export function quotaTable(rows: readonly QuotaRow[]): string {
  const order = { short: 0, unknown: 1, enough: 2 };
  const sorted = [...rows].sort((a, b) => order[a.verdict] - order[b.verdict]);
  return textTable(['quota', 'code', 'limit', 'in use', 'needed', 'verdict'], sorted.map(cellsOf));
}

function cellsOf(row: QuotaRow): string[] {
  const verdict = row.verdict === 'enough' ? row.verdict : `${row.verdict}: ${row.reason}`;
  const limit = row.isDefault ? `${text(row.limit)} (default)` : text(row.limit);
  return [row.name, row.code ?? '-', limit, text(row.inUse), String(row.needed), verdict];
}

const text = (value: number | null): string => (value === null ? '-' : String(value));

/** One shortfall as a line: name, code, limit, needed. */
export function quotaSentence(row: QuotaRow): string {
  const code = row.code ? ` (${row.code})` : '';
  const used = row.inUse ? `, ${row.inUse} in use` : '';
  return `${row.name}${code}: limit ${text(row.limit)}${used}, needed ${row.needed}`;
}

/** The AWS CLI command that requests the increase; undefined when the code is not known. */
export function increaseCommand(row: QuotaRow, region: string): string | undefined {
  if (!row.code) return undefined;
  const desired = row.needed + (row.inUse ?? 0);
  return (
    `aws service-quotas request-service-quota-increase --service-code sagemaker --quota-code ${row.code} ` +
    `--desired-value ${desired} --region ${region}`
  );
}
