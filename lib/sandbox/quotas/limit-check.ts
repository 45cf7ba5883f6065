import { instanceQuota } from '../../core/catalog/quotas';
import { type Pool, TOTALS } from '../../core/quota';
import { clusterOptions } from '../jobs/cluster';
import { ServiceError } from '../wire/api-call';
import type { QuotaStore } from './quota-store';

/** Instances that live jobs and warm pools hold now. */
export interface CurrentUsage {
  /** Instances by type, for one kind of use. */
  byType: ReadonlyMap<string, number>;
  total: number;
}

interface LimitRequest {
  kind: Pool;
  config: Parameters<typeof clusterOptions>[0] & { VolumeSizeInGB?: number };
  maxRuntimeSeconds: number;
  usage: CurrentUsage;
}

const RESOURCE: Readonly<Record<Pool, string>> = {
  training: 'training-job',
  spot: 'spot-training-job',
  processing: 'processing-job',
};

/**
 * Rejects a job above a quota, with the message of the service: https://github.com/aws/amazon-sagemaker-examples/issues/1543, retrieved
 * 2026-11-20. A job that waits for capacity counts, and so does a warm pool. The documentation does not say which quotas preferences must
 * satisfy; all of them are checked, because any may be the one that is used.
 * @throws ServiceError ResourceLimitExceeded, also when the Region does not have the type
 */
export function requireWithinLimits(
  quotas: QuotaStore,
  { account, region }: { account: string; region: string },
  { kind, config, maxRuntimeSeconds, usage }: LimitRequest,
): void {
  const codes = TOTALS[kind];
  const limit = (code: string) => quotas.find(account, region, code);
  for (const { cluster, demands } of clusterOptions(config)) {
    for (const { instanceType, count } of demands) {
      const row = quotas.findByName(account, region, instanceQuota(instanceType, kind).name);
      const resource = `${RESOURCE[kind]}/${instanceType}`;
      if (!row) throw exceeded(`The requested resource ${resource} is not available in this region`);
      requireUnder(row, usage.byType.get(instanceType) ?? 0, count, 'Instances');
    }
    requireUnder(limit(codes.perJob), 0, cluster.instanceCount, 'Instances');
    requireUnder(limit(codes.across), usage.total, cluster.instanceCount, 'Instances');
    requireUnder(limit(codes.runtime), 0, maxRuntimeSeconds, 'Seconds');
    requireUnder(limit(codes.volume), 0, config.VolumeSizeInGB ?? 0, 'Gigabytes');
  }
}

const exceeded = (message: string) => new ServiceError('ResourceLimitExceeded', message);

function requireUnder(
  row: { name: string; value: number } | undefined,
  used: number,
  delta: number,
  unit: 'Instances' | 'Seconds' | 'Gigabytes',
): void {
  if (!row || used + delta <= row.value) return;
  throw exceeded(
    `The account-level service limit '${row.name}' is ${row.value} ${unit}, with current utilization of ${used} ${unit} ` +
      `and a request delta of ${delta} ${unit}. Please use AWS Service Quotas to request an increase for this quota. ` +
      'If AWS Service Quotas is not available, contact AWS support to request an increase for this quota.',
  );
}
