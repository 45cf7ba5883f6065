import type { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';

/** Clients that the quota preflight uses. */
export interface PreflightDeps {
  quotas: ServiceQuotasClient;
  region: string;
  clock: { now(): number; sleep(ms: number): Promise<void> };
  /** Writes one line to the function's log. */
  log(message: string): void;
}
