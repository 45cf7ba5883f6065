/** An applied limit as Service Quotas gave it, or why there is none. A limit that could not be read is never guessed. */
export type AppliedLimit =
  | { value: number; code?: string }
  /** isAbsent: the service has answered that there is no such quota, or no value of it. */
  | { unknown: string; isAbsent?: true };

/** Applied limits by quota name. */
export type Limits = ReadonlyMap<string, AppliedLimit>;

/** What names a quota of SageMaker in a request of GetServiceQuota. */
export const quotaRequest = (QuotaCode: string) => ({ ServiceCode: 'sagemaker', QuotaCode });

/** What GetServiceQuota answers, as far as it counts. */
interface QuotaAnswer {
  Quota?: { Value?: number; ErrorReason?: { ErrorMessage?: string } };
}

/** The limit that an answer of GetServiceQuota for a code holds. */
export function limitOf(code: string, { Quota }: QuotaAnswer): AppliedLimit {
  if (Quota?.Value === undefined || Quota.ErrorReason)
    return { unknown: Quota?.ErrorReason?.ErrorMessage ?? 'Service Quotas gave no value' };
  return { value: Quota.Value, code };
}

/** What an error of Service Quotas says of a limit. */
export function unreadLimit(error: unknown): { unknown: string; isAbsent?: true } {
  const { name, message } = error as { name?: string; message?: string };
  if (name === 'NoSuchResourceException')
    return { unknown: 'the region has no such quota, or no value was ever applied', isAbsent: true };
  if (name === 'AccessDeniedException')
    return { unknown: `servicequotas:GetServiceQuota is not permitted (${message})` };
  return { unknown: `${name ?? 'error'}: ${message ?? String(error)}` };
}
