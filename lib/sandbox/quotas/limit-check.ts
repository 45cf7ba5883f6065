import { instanceQuota } from '../../core/catalog/quotas';
import { type Pool, TOTALS } from '../../core/quota';
import { ServiceError } from '../wire/api-call';
import type { QuotaStore } from './quota-store';

interface InstanceDemand {
  instanceType: string;
  count: number;
}

/** Instances that live jobs and warm pools hold now. */
export interface CurrentUsage {
  /** Instances by type, for one kind of use. */
  byType: ReadonlyMap<string, number>;
  total: number;
}

export interface LimitRequest {
  account: string;
  region: string;
  kind: Pool;
  demands: readonly InstanceDemand[];
  maxRuntimeSeconds: number;
  volumeGiB?: number;
  usage: CurrentUsage;
}

const RESOURCE: Readonly<Record<Pool, string>> = {
  training: 'training-job',
  spot: 'spot-training-job',
  processing: 'processing-job',
};

/**
 * Rejects a request above a quota, with the message of the service: https://github.com/aws/amazon-sagemaker-examples/issues/1543, retrieved
 * 2026-11-20. A job that waits for capacity counts, and so does a warm pool.
 * @throws ServiceError ResourceLimitExceeded, also when the Region does not have the type
 */
export function requireWithinLimits(quotas: QuotaStore, request: LimitRequest): void {
  for (const demand of request.demands) requireTypeLimit(quotas, request, demand);
  const { account, region, kind, usage } = request;
  const codes = TOTALS[kind];
  const count = request.demands.reduce((sum, demand) => sum + demand.count, 0);
  const limit = (code: string) => quotas.find(account, region, code);
  requireUnder(limit(codes.perJob), 0, count, 'Instances');
  requireUnder(limit(codes.across), usage.total, count, 'Instances');
  requireUnder(limit(codes.runtime), 0, request.maxRuntimeSeconds, 'Seconds');
  requireUnder(limit(codes.volume), 0, request.volumeGiB ?? 0, 'Gigabytes');
}

function requireTypeLimit(quotas: QuotaStore, request: LimitRequest, { instanceType, count }: InstanceDemand): void {
  const { account, region, kind, usage } = request;
  const row = quotas.findByName(account, region, instanceQuota(instanceType, kind).name);
  if (!row) {
    throw new ServiceError(
      'ResourceLimitExceeded',
      `The requested resource ${RESOURCE[kind]}/${instanceType} is not available in this region`,
    );
  }
  requireUnder(row, usage.byType.get(instanceType) ?? 0, count, 'Instances');
}

function requireUnder(
  row: { name: string; value: number } | undefined,
  used: number,
  delta: number,
  unit: 'Instances' | 'Seconds' | 'Gigabytes',
): void {
  if (!row || used + delta <= row.value) return;
  throw new ServiceError(
    'ResourceLimitExceeded',
    `The account-level service limit '${row.name}' is ${row.value} ${unit}, with current utilization of ${used} ${unit} ` +
      `and a request delta of ${delta} ${unit}. Please use AWS Service Quotas to request an increase for this quota. ` +
      'If AWS Service Quotas is not available, contact AWS support to request an increase for this quota.',
  );
}
