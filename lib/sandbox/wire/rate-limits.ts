/** Calls per second and burst of one operation, per account and Region. */
export interface Rate {
  perSecond: number;
  burst: number;
}

/**
 * Published rates. Service Quotas: https://docs.aws.amazon.com/servicequotas/latest/userguide/reference_limits.html; CreateTrainingJob: one
 * per second (SageMaker endpoints and quotas). Retrieved 2026-11-20.
 */
export const RATES: Readonly<Record<string, Rate>> = {
  CreateTrainingJob: { perSecond: 1, burst: 1 },
  GetServiceQuota: { perSecond: 5, burst: 10 },
  GetAWSDefaultServiceQuota: { perSecond: 5, burst: 10 },
  GetRequestedServiceQuotaChange: { perSecond: 5, burst: 10 },
  ListRequestedServiceQuotaChangeHistory: { perSecond: 5, burst: 10 },
  ListRequestedServiceQuotaChangeHistoryByQuota: { perSecond: 5, burst: 10 },
  ListServiceQuotas: { perSecond: 10, burst: 20 },
  ListAWSDefaultServiceQuotas: { perSecond: 10, burst: 20 },
};

/** Token buckets: each call takes one token, and tokens are refilled at the rate of the operation. */
export class RateLimits {
  private readonly buckets = new Map<string, { tokens: number; at: number }>();

  constructor(private readonly rates: Readonly<Record<string, Rate>>) {}

  /** Whether a call is allowed now (milliseconds since the epoch). */
  take(account: string, region: string, operation: string, now: number): boolean {
    const rate = this.rates[operation];
    if (!rate) return true;
    const key = `${account}/${region}/${operation}`;
    const { tokens, at } = this.buckets.get(key) ?? { tokens: rate.burst, at: now };
    const filled = Math.min(rate.burst, tokens + ((now - at) / 1000) * rate.perSecond);
    const passes = filled >= 1;
    this.buckets.set(key, { tokens: passes ? filled - 1 : filled, at: now });
    return passes;
  }
}
