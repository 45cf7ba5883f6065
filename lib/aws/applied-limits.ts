import {
  GetServiceQuotaCommand,
  paginateListServiceQuotas,
  type ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import type { AppliedLimit } from '../quota';

/** GetServiceQuota allows 5 calls a second (docs.aws.amazon.com servicequotas reference_limits, 2026-11-20). */
const CALLS_PER_SECOND = 5;

export interface QuotaRefLike {
  code?: string;
  name: string;
}

/** Waits between calls; injected so that tests need no clock. */
export type Pause = (milliseconds: number) => Promise<void>;

/**
 * Applied limits by quota name, one GetServiceQuota per distinct code and at most five a second. A quota without a known code is
 * found by name in one listing. What cannot be read is unknown with the reason, never AWS's default.
 */
export async function readAppliedLimits(
  client: ServiceQuotasClient,
  quotas: readonly QuotaRefLike[],
  pause: Pause,
): Promise<Map<string, AppliedLimit>> {
  const limits = new Map<string, AppliedLimit>();
  const distinct = [...new Map(quotas.map((q) => [q.name, q])).values()];
  const coded = distinct.filter((q) => q.code !== undefined);
  for (const [i, quota] of coded.entries()) {
    if (i > 0 && i % CALLS_PER_SECOND === 0) await pause(1000);
    limits.set(quota.name, await readAppliedLimit(client, quota.code ?? ''));
  }
  const uncoded = distinct.filter((q) => q.code === undefined).map((q) => q.name);
  if (uncoded.length > 0) await readByName(client, uncoded, limits);
  return limits;
}

/** The applied limit behind one code, or why it is not known. */
export async function readAppliedLimit(client: ServiceQuotasClient, code: string): Promise<AppliedLimit> {
  try {
    const { Quota } = await client.send(new GetServiceQuotaCommand({ ServiceCode: 'sagemaker', QuotaCode: code }));
    if (Quota?.Value === undefined || Quota.ErrorReason)
      return { unknown: Quota?.ErrorReason?.ErrorMessage ?? 'Service Quotas gave no value' };
    return { value: Quota.Value, code };
  } catch (error) {
    return { unknown: reasonOf(error) };
  }
}

async function readByName(
  client: ServiceQuotasClient,
  names: readonly string[],
  limits: Map<string, AppliedLimit>,
): Promise<void> {
  try {
    for await (const page of paginateListServiceQuotas({ client, pageSize: 100 }, { ServiceCode: 'sagemaker' })) {
      for (const quota of page.Quotas ?? []) {
        const name = quota.QuotaName ?? '';
        if (names.includes(name) && quota.Value !== undefined)
          limits.set(name, { value: quota.Value, code: quota.QuotaCode });
      }
    }
    for (const name of names) if (!limits.has(name)) limits.set(name, { unknown: 'the region has no such quota' });
  } catch (error) {
    for (const name of names) if (!limits.has(name)) limits.set(name, { unknown: reasonOf(error) });
  }
}

function reasonOf(error: unknown): string {
  const { name, message } = error as { name?: string; message?: string };
  if (name === 'NoSuchResourceException') return 'the region has no such quota, or no value was ever applied';
  if (name === 'AccessDeniedException') return `servicequotas:GetServiceQuota is not permitted (${message})`;
  return `${name ?? 'error'}: ${message ?? String(error)}`;
}
