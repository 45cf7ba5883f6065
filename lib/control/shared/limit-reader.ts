import type { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import type { AppliedLimit, Limits, QuotaNeed } from '../../core/quota';
import { readAppliedLimit } from '../../shared/aws/applied-limits';

/** Applied quotas change rarely; the service allows few reads per second. */
const CACHE_MS = 900_000;
/** A limit that could not be read is not asked for again so soon: the service was slow or throttled the call. */
const RETRY_MS = 10_000;
/** GetServiceQuota accepts about five calls per second. */
export const PAUSE_MS = 200;

/** What names a quota: its code is what Service Quotas is asked for. */
type QuotaName = Pick<QuotaNeed, 'name' | 'code'>;

/** Reads applied values of SageMaker quotas; a quota that could not be read is reported as unknown. */
export interface LimitReader {
  /** Applied limits by quota name. One that could never be read is returned as unknown, with the reason, and never guessed. */
  read(needs: readonly QuotaName[]): Promise<Limits>;
  /** Limits that the process has read. @default - it keeps none */
  readonly kept?: KeptLimits;
}

const NO_CODE: AppliedLimit = { unknown: 'no quota code is known for it' };

/**
 * Limits that a process has read, by quota code. What the service has answered, a value or that it has none, is valid for a quarter of an hour.
 * Where it could not be read, the value before stands in for ten seconds. Times are epoch milliseconds.
 */
export class KeptLimits {
  private readonly byCode = new Map<string, { limit: AppliedLimit; until: number }>();

  get isEmpty(): boolean {
    return this.byCode.size === 0;
  }

  /** The limit as it was read last, while it is valid. */
  find(code: string, at: number): AppliedLimit | undefined {
    const kept = this.byCode.get(code);
    return kept && at < kept.until ? kept.limit : undefined;
  }

  /** @returns the limit that counts now */
  keep(code: string, read: AppliedLimit, at: number): AppliedLimit {
    const isAnswer = 'value' in read || read.isAbsent === true;
    const limit = isAnswer ? read : (this.byCode.get(code)?.limit ?? read);
    this.byCode.set(code, { limit, until: at + (isAnswer ? CACHE_MS : RETRY_MS) });
    return limit;
  }

  /** Limits of all needs; undefined where one is missing or no longer valid. */
  all(needs: readonly QuotaName[], at: number): Limits | undefined {
    const limits = new Map<string, AppliedLimit>();
    for (const { name, code } of needs) {
      const limit = code ? this.find(code, at) : NO_CODE;
      if (!limit) return undefined;
      limits.set(name, limit);
    }
    return limits;
  }
}

/** Reads one quota after the other, and each code at most once per 15 minutes and process. */
export class ServiceQuotaReader implements LimitReader {
  readonly kept = new KeptLimits();

  constructor(
    private readonly client: ServiceQuotasClient,
    private readonly clock: { now(): number; sleep(ms: number): Promise<void> },
  ) {}

  async read(needs: readonly QuotaName[]): Promise<Limits> {
    const limits = new Map<string, AppliedLimit>();
    for (const { name, code } of needs) {
      limits.set(name, code ? (this.kept.find(code, this.clock.now()) ?? (await this.one(code))) : NO_CODE);
    }
    return limits;
  }

  private async one(code: string): Promise<AppliedLimit> {
    if (!this.kept.isEmpty) await this.clock.sleep(PAUSE_MS);
    const limit = await readAppliedLimit(this.client, code);
    return this.kept.keep(code, limit, this.clock.now());
  }
}
