import { readFileSync } from 'node:fs';
import type { AwsFault, FaultSpec, PlannedFault } from './faults/fault';
import type { FaultEntry } from './faults/fault-plan';
import type { QuotaRow } from './quotas/quota-store';
import type { IncreaseRequest } from './quotas/service-quotas';
import { requestText } from './wire/http-request';

type AnyFaultEntry = FaultEntry<PlannedFault | AwsFault>;

/** The sandbox's own calls (docs/sandbox.md) from TypeScript: plan faults, set quotas, decide increase requests. */
export class SandboxAdmin {
  /**
   * @param endpoint that of the sandbox's SageMaker service
   * @param certFile its certificate authority, in auth mode
   */
  constructor(
    private readonly endpoint: string,
    private readonly certFile?: string,
  ) {}

  /** Plans a fault; it takes effect when its condition is met. */
  fault(spec: FaultSpec): Promise<AnyFaultEntry> {
    return this.call('POST', 'faults', spec);
  }

  async faults(): Promise<AnyFaultEntry[]> {
    return (await this.call<{ faults: AnyFaultEntry[] }>('GET', 'faults')).faults;
  }

  removeFault(id: string): Promise<void> {
    return this.call('DELETE', `faults/${id}`);
  }

  clearFaults(): Promise<void> {
    return this.call('DELETE', 'faults');
  }

  async quotas(region: string): Promise<QuotaRow[]> {
    return (await this.call<{ quotas: QuotaRow[] }>('GET', `quotas/${region}`)).quotas;
  }

  /** @param value applied from now on; null removes the row, as in a Region that does not offer the quota */
  setQuota(region: string, code: string, value: number | null, name?: string): Promise<QuotaRow> {
    return this.call('PUT', `quotas/${region}/${code}`, { value, name });
  }

  /** Decides the open increase requests of a Region, or those of one quota. */
  async decideIncreases(
    region: string,
    decision: 'APPROVED' | 'DENIED' = 'APPROVED',
    code?: string,
  ): Promise<IncreaseRequest[]> {
    const body = { region, decision, code };
    return (await this.call<{ requests: IncreaseRequest[] }>('POST', 'quotas/approve', body)).requests;
  }

  private async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const url = new URL(`/_slipway/${path}`, this.endpoint);
    const options = { method, ca: this.certFile && readFileSync(this.certFile) };
    const { status, text } = await requestText(url, options, body === undefined ? undefined : JSON.stringify(body));
    if (status >= 300) throw new Error(`sandbox: ${method} ${url.pathname} answered ${status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }
}
