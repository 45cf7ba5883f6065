import type { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';

/** Clients that the quota preflight calls. */
export interface PreflightDeps {
  quotas: ServiceQuotasClient;
  region: string;
  clock: { now(): number; sleep(ms: number): Promise<void> };
  /** One line of the function's log. */
  log(message: string): void;
}
