import type { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { readAppliedLimit } from '../../aws/applied-limits';
import type { AppliedLimit, Limits, QuotaNeed } from '../../quota';

/** Applied limits change rarely; the service allows few reads a second. */
const CACHE_MS = 900_000;
/** GetServiceQuota answers about five calls a second. */
const PAUSE_MS = 200;

/** Reads limits of SageMaker quotas; undefined is a limit that could not be read. */
export interface LimitReader {
  /** Applied limits by quota name. One that could never be read is unknown, with the reason, and never guessed. */
  read(needs: readonly Pick<QuotaNeed, 'name' | 'code'>[]): Promise<Limits>;
}

/** Reads one quota after the other, each code once per quarter of an hour and process. */
export class ServiceQuotaReader implements LimitReader {
  private readonly cache = new Map<string, { limit: AppliedLimit; at: number }>();

  constructor(
    private readonly client: ServiceQuotasClient,
    private readonly clock: { now(): number; sleep(ms: number): Promise<void> },
  ) {}

  async read(needs: readonly Pick<QuotaNeed, 'name' | 'code'>[]): Promise<Limits> {
    const limits = new Map<string, AppliedLimit>();
    for (const { name, code } of needs) {
      limits.set(name, code ? await this.one(code) : { unknown: 'no quota code is known for it' });
    }
    return limits;
  }

  private async one(code: string): Promise<AppliedLimit> {
    const cached = this.cache.get(code);
    if (cached && this.clock.now() - cached.at < CACHE_MS) return cached.limit;
    if (this.cache.size > 0) await this.clock.sleep(PAUSE_MS);
    const limit = await readAppliedLimit(this.client, code);
    // What could not be read is asked for again by the next caller; until then the value that was read last stands.
    if (!('value' in limit)) return cached?.limit ?? limit;
    this.cache.set(code, { limit, at: this.clock.now() });
    return limit;
  }
}
