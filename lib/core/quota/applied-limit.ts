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
