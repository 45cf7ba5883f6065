import type { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import type { AppliedLimit, Limits, QuotaNeed } from '../../core/quota';
import { readAppliedLimit } from '../../shared/aws/applied-limits';

/** Applied quotas change rarely; the service allows few reads per second. */
const CACHE_MS = 900_000;
/** A limit that could not be read is not asked for again so soon: the service was slow or throttled the call. */
const RETRY_MS = 10_000;
/** GetServiceQuota accepts about five calls per second. */
const PAUSE_MS = 200;

/**
 * Reads one quota after the other. What the service has answered, a value or that it has none, is valid for a quarter of an hour. Where it
 * could not be read, the value before stands in for ten seconds.
 */
export class ServiceQuotaReader {
  /** What the process has read, by quota code; `until` is epoch milliseconds. */
  private readonly kept = new Map<string, { limit: AppliedLimit; until: number }>();

  constructor(
    private readonly client: ServiceQuotasClient,
    private readonly clock: { now(): number; sleep(ms: number): Promise<void> },
  ) {}

  /** Applied limits by quota name. One that could never be read is returned as unknown, with the reason, and never guessed. */
  async read(needs: readonly Pick<QuotaNeed, 'name' | 'code'>[]): Promise<Limits> {
    const limits = new Map<string, AppliedLimit>();
    for (const { name, code } of needs)
      limits.set(name, code ? await this.one(code) : { unknown: 'no quota code is known for it' });
    return limits;
  }

  private async one(code: string): Promise<AppliedLimit> {
    const before = this.kept.get(code);
    if (before && this.clock.now() < before.until) return before.limit;
    if (this.kept.size > 0) await this.clock.sleep(PAUSE_MS);
    const read = await readAppliedLimit(this.client, code);
    const isAnswer = 'value' in read || read.isAbsent === true;
    const limit = isAnswer ? read : (before?.limit ?? read);
    this.kept.set(code, { limit, until: this.clock.now() + (isAnswer ? CACHE_MS : RETRY_MS) });
    return limit;
  }
}

/** What readers of quotas need of it. */
export type LimitReader = Pick<ServiceQuotaReader, 'read'>;
