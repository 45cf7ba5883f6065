import { instanceQuota, type QuotaRef } from '../../core/catalog/quotas';
import { QUOTAS_ITEM } from '../../core/contracts/storage';
import { QUOTA_DIMENSIONS, QUOTA_METRIC } from '../../core/contracts/team-metrics';
import { findCapacityOption } from '../../core/lifecycle/capacity-options';
import type { RunRecord } from '../../core/lifecycle/record';
import { type JobInstances, quotaUsage } from '../../core/quota';
import { describeError } from '../shared/errors';
import { instancesOfJob } from '../shared/queue-runs';
import type { ReconcileDeps } from './deps';
import { notify, type QuotaUse } from './notify/notify';
import { othersUsage } from './queue/others-usage';
import { metricLine } from './team-metrics';

/**
 * Writes the utilisation of the fullest instance quota that live jobs of this environment use, as a line in CloudWatch's embedded metric
 * format; 0 while no job is live. A notice names the quotas above the threshold of the alarm. The limit applies to the account, so training
 * jobs of others count as well. A quota whose limit cannot be read is skipped; if none is left, nothing is written.
 * @param active all runs that are not over
 */
export async function writeQuotaUse(deps: ReconcileDeps, active: readonly RunRecord[]): Promise<void> {
  const { quotaPercent, write } = deps.metrics ?? {};
  if (!quotaPercent || !write) return;
  try {
    const { uses, unread } = await readUses(deps, active);
    const [fullest] = uses;
    if (!fullest) return;
    const { percent, quota, inUse, limit } = fullest;
    // The quota is not a dimension, so that there is one metric; the log line contains the name of the quota.
    const values = { [QUOTA_METRIC]: percent, ...(quota && { quota, inUse, limit }) };
    write(metricLine(deps, QUOTA_DIMENSIONS, { [QUOTA_METRIC]: 'Percent' }, values));
    const full = uses.filter(({ percent }) => percent >= quotaPercent);
    await notifyOfQuotas(deps, full, unread);
  } catch (error) {
    deps.log('warn', 'the use of quotas was not written', { error: describeError(error) });
  }
}

/** Use of each quota, fullest first, and the names of the quotas whose limit could not be read. */
async function readUses(
  deps: ReconcileDeps,
  active: readonly RunRecord[],
): Promise<{ uses: QuotaUse[]; unread: string[] }> {
  const live = active.flatMap((run) => liveJob(run) ?? []);
  const refs = quotasOf(live.map(({ instances }) => instances));
  if (refs.length === 0) return { uses: [{ quota: '', inUse: 0, limit: 0, percent: 0 }], unread: [] };
  const own = quotaUsage(live.map(({ instances }) => instances));
  const others = await othersUsage(deps, new Set(live.map(({ jobName }) => jobName)));
  const limits = await deps.limits.read(refs);
  const uses = refs.flatMap(({ name, code }): QuotaUse[] => {
    const limit = limits.get(name);
    if (!limit || !('value' in limit)) return [];
    const inUse = (own.get(name) ?? 0) + (others.get(name) ?? 0);
    return [
      { quota: name, code, inUse, limit: limit.value, percent: Math.round((100 * inUse) / Math.max(limit.value, 1)) },
    ];
  });
  const unread = refs.map(({ name }) => name).filter((name) => !uses.some(({ quota }) => quota === name));
  return { uses: uses.sort((a, b) => b.percent - a.percent), unread };
}

/**
 * The job of a run, from its create request on. Undefined without a job, and for capacity of a training plan, which counts against no
 * instance quota.
 */
function liveJob(run: RunRecord): { jobName: string; instances: JobInstances } | undefined {
  const { attempt } = run;
  const usage = attempt && findCapacityOption(run, attempt.capacityOptionId)?.usage;
  const instances = usage === undefined || usage === 'training-plan' ? undefined : instancesOfJob(run);
  return attempt && instances && { jobName: attempt.jobName, instances };
}

function quotasOf(jobs: readonly JobInstances[]): QuotaRef[] {
  const all = jobs.flatMap(({ kind, spot, instances }) => {
    const usage = kind === 'processing' ? 'processing' : spot ? 'spot' : 'training';
    return instances.map(({ instanceType }) => instanceQuota(instanceType, usage));
  });
  return [...new Map(all.map((ref) => [ref.name, ref])).values()];
}

/**
 * Notifies the environment's subscribers and chat channel of quotas that have reached the percentage of the alarm. Each quota is reported
 * once; it may be reported again after its use was below the percentage at two consecutive ticks, which is also when the alarm ends. The
 * alarm cannot name the quota, because its metric has no such dimension. The state is written after the notice, so that a notice may be
 * sent twice but is never lost.
 * @param full quotas at or above the percentage of the alarm
 * @param unread names of quotas whose limit could not be read: their state does not change
 */
async function notifyOfQuotas(
  deps: ReconcileDeps,
  full: readonly QuotaUse[],
  unread: readonly string[],
): Promise<void> {
  const notified = await deps.store.findNotified(QUOTAS_ITEM);
  const added = full.filter(({ quota }) => !notified.includes(quota) && !notified.includes(below(quota)));
  const names = full.map(({ quota }) => quota);
  const remembered = notified.flatMap((entry) => {
    const quota = entry.startsWith(BELOW) ? entry.slice(BELOW.length) : entry;
    if (names.includes(quota)) return [];
    if (unread.includes(quota)) return [entry];
    return entry === quota ? [below(quota)] : [];
  });
  const next = [...names, ...remembered];
  if (next.length === notified.length && next.every((entry) => notified.includes(entry))) return;
  if (added.length > 0) await notify(deps, { about: 'quotas', uses: added });
  await deps.store.saveNotified(QUOTAS_ITEM, next);
}

/** Prefix of the name of a quota that was below the percentage at the last tick. */
const BELOW = 'below: ';
const below = (quota: string): string => `${BELOW}${quota}`;
