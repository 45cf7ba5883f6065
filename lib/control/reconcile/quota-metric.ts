import { instanceQuota, type QuotaRef } from '../../core/catalog/quotas';
import { METRIC_NAMESPACE, QUOTA_DIMENSIONS, QUOTA_METRIC } from '../../core/contracts/team-metrics';
import { findCapacityOption } from '../../core/lifecycle/capacity-options';
import type { RunRecord } from '../../core/lifecycle/record';
import { type JobInstances, quotaUsage } from '../../core/quota';
import { describeError } from '../shared/errors';
import { instancesOfJob } from '../shared/queue-runs';
import type { ReconcileDeps } from './deps';
import type { QuotaUse } from './notify/notifier';
import { othersUsage } from './queue/others-usage';
import { notifyOfQuotas } from './quota-notice';

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
    write(metricLine(deps, fullest));
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

/** The quota is not a dimension, so that there is one metric; the log line contains the name of the quota. */
function metricLine({ environment, now }: ReconcileDeps, { percent, quota, inUse, limit }: QuotaUse): string {
  const Metrics = [{ Name: QUOTA_METRIC, Unit: 'Percent' }];
  return JSON.stringify({
    _aws: {
      Timestamp: now().getTime(),
      CloudWatchMetrics: [{ Namespace: METRIC_NAMESPACE, Dimensions: [QUOTA_DIMENSIONS], Metrics }],
    },
    Environment: environment,
    [QUOTA_METRIC]: percent,
    ...(quota && { quota, inUse, limit }),
  });
}
