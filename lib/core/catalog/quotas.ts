import { GENERAL_QUOTAS, INSTANCE_QUOTA_CODES, type QuotaUsage, RESERVED_CAPACITY_QUOTA_CODES } from './quota-codes';

export type { QuotaUsage } from './quota-codes';
export { GENERAL_QUOTAS, INSTANCE_QUOTA_CODES } from './quota-codes';

/** A SageMaker quota by name, and by code if AWS publishes it. */
export interface QuotaRef {
  /** Service Quotas code; if absent, look up `name` at run time. */
  code?: string;
  /** QuotaName, as in Service Quotas and in ResourceLimitExceeded messages. */
  name: string;
}

/** Codes of quotas that do not depend on an instance type. Source: quota-codes.ts. */
export const QUOTA = {
  longestRunSeconds: 'L-33A961FD',
  instancesAcrossTraining: 'L-00C91CB5',
  instancesAcrossSpot: 'L-93958082',
  instancesPerTraining: 'L-622CFD70',
  instancesPerSpot: 'L-DB62C864',
  ebsVolumeGiB: 'L-C5A266EB',
  instancesAcrossProcessing: 'L-F311B08F',
  trainingPlans: 'L-867702E6',
} as const;

const NAME_OF_USAGE: Readonly<Record<QuotaUsage, string>> = {
  training: 'training job usage',
  spot: 'spot training job usage',
  'warm-pool': 'training warm pool usage',
  processing: 'processing job usage',
};

/** The quota of `instanceType` for one usage kind. */
export function instanceQuota(instanceType: string, usage: QuotaUsage): QuotaRef {
  return {
    code: INSTANCE_QUOTA_CODES[instanceType]?.[usage],
    name: `${instanceType} for ${NAME_OF_USAGE[usage]}`,
  };
}

/** The quota of instances of one type in training plans. */
export function reservedCapacityQuota(instanceType: string): QuotaRef {
  return {
    code: RESERVED_CAPACITY_QUOTA_CODES[instanceType],
    name: `Number of ${instanceType} instances in reserved capacity across training plans per Region`,
  };
}

/** A quota that does not depend on an instance type. */
export function generalQuota(code: string): QuotaRef {
  return { code, name: GENERAL_QUOTAS[code]?.name ?? code };
}
