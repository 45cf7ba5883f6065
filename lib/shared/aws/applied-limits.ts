import {
  GetAWSDefaultServiceQuotaCommand,
  GetServiceQuotaCommand,
  type ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { type AppliedLimit, limitOf, quotaRequest, unreadLimit } from '../../core/quota';
import { findQuotasByName, type Pause } from './quota-increase';

/** GetServiceQuota allows 5 calls per second (docs.aws.amazon.com servicequotas reference_limits, 2026-11-20). */
const CALLS_PER_SECOND = 5;

/** Identifies a service quota: by its code if known, otherwise by its name. */
export interface QuotaRefLike {
  code?: string;
  name: string;
}

/**
 * Reads applied limits by quota name: one GetServiceQuota call per distinct code, at most five per second. Quotas without a known code are
 * found by name in one listing. A limit that cannot be read is unknown, with the reason.
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
  if (uncoded.length > 0) await readByName(client, uncoded, limits, pause);
  return limits;
}

/**
 * The limit of one quota code, or the reason why it is unknown. Where no value was ever applied, AWS's default is the limit; an applied value
 * that cannot be read is not replaced by it.
 */
export async function readAppliedLimit(client: ServiceQuotasClient, code: string): Promise<AppliedLimit> {
  const applied = await limitFrom(code, () => client.send(new GetServiceQuotaCommand(quotaRequest(code))));
  if (!('isAbsent' in applied)) return applied;
  const byDefault = await limitFrom(code, () => client.send(new GetAWSDefaultServiceQuotaCommand(quotaRequest(code))));
  if (!('value' in byDefault)) return 'isAbsent' in byDefault ? applied : byDefault;
  return { ...byDefault, isDefault: true };
}

async function limitFrom(code: string, read: () => Promise<Parameters<typeof limitOf>[1]>): Promise<AppliedLimit> {
  try {
    return limitOf(code, await read());
  } catch (error) {
    return unreadLimit(error);
  }
}

async function readByName(
  client: ServiceQuotasClient,
  names: readonly string[],
  limits: Map<string, AppliedLimit>,
  pause: Pause,
): Promise<void> {
  try {
    for await (const { QuotaName, QuotaCode, Value } of findQuotasByName(client, names, pause)) {
      if (Value !== undefined) limits.set(QuotaName, { value: Value, code: QuotaCode });
    }
    for (const name of names) if (!limits.has(name)) limits.set(name, { unknown: 'the region has no such quota' });
  } catch (error) {
    for (const name of names) if (!limits.has(name)) limits.set(name, unreadLimit(error));
  }
}
