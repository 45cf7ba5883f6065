import { randomUUID } from 'node:crypto';
import { ServiceError } from '../wire/service-error';
import type { QuotaRow, QuotaStore } from './quota-store';

/** Status of a request, as Service Quotas names it. */
export type IncreaseStatus = 'PENDING' | 'CASE_OPENED' | 'APPROVED' | 'DENIED';

/** A request for an increase of a quota. */
export interface IncreaseRequest {
  id: string;
  account: string;
  region: string;
  code: string;
  quotaName: string;
  desiredValue: number;
  status: IncreaseStatus;
  requester: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

const OPEN: readonly IncreaseStatus[] = ['PENDING', 'CASE_OPENED'];

/** Maximum number of open requests per account: docs.aws.amazon.com servicequotas, retrieved 2026-11-20. */
const MAX_OPEN = 20;

/** Content of a new increase request. */
export type RequestedIncrease = Pick<IncreaseRequest, 'desiredValue' | 'requester'>;

/** Requests for quota increases. Nothing is granted automatically: a person (or a test) approves or denies. */
export class IncreaseRequests {
  private readonly requests: IncreaseRequest[] = [];

  constructor(private readonly quotas: QuotaStore) {}

  /** @throws ServiceError for a value that is not an increase, a second open request, or too many open requests */
  file(account: string, region: string, row: QuotaRow, requested: RequestedIncrease): IncreaseRequest {
    const { desiredValue } = requested;
    if (desiredValue <= row.value) {
      throw new ServiceError(
        'IllegalArgumentException',
        `Quota value provided, ${desiredValue}, must be greater than current quota value, ${row.value}.`,
      );
    }
    const open = this.requests.filter((r) => r.account === account && OPEN.includes(r.status));
    if (open.some((r) => r.region === region && r.code === row.code)) {
      throw new ServiceError(
        'ResourceAlreadyExistsException',
        'Only one open service quota increase request is allowed per quota.',
      );
    }
    if (open.length >= MAX_OPEN) {
      throw new ServiceError('QuotaExceededException', 'You have exceeded your service quota of open quota requests.');
    }
    const now = Date.now();
    const times = { createdAt: now, updatedAt: now };
    const filed = { account, region, code: row.code, quotaName: row.name, ...requested, ...times };
    const request: IncreaseRequest = { id: randomUUID().replaceAll('-', ''), status: 'PENDING', ...filed };
    this.requests.push(request);
    return request;
  }

  snapshot(): IncreaseRequest[] {
    return [...this.requests];
  }

  restore(snapshot: readonly IncreaseRequest[]): void {
    this.requests.push(...snapshot);
  }

  find(account: string, region: string, id: string): IncreaseRequest | undefined {
    return this.list(account, region).find((r) => r.id === id);
  }

  /** Newest first. */
  list(account: string, region: string): IncreaseRequest[] {
    return this.requests.filter((r) => r.account === account && r.region === region).reverse();
  }

  /**
   * Decides the open requests of one quota, or of a whole Region; approval applies the desired value immediately.
   * @returns the requests that were decided
   */
  decide(account: string, region: string, status: 'APPROVED' | 'DENIED', code?: string): IncreaseRequest[] {
    const open = this.list(account, region).filter((r) => OPEN.includes(r.status) && (!code || r.code === code));
    for (const request of open) {
      request.status = status;
      request.updatedAt = Date.now();
      if (status === 'APPROVED') this.quotas.set(account, region, { code: request.code, value: request.desiredValue });
    }
    return open;
  }
}
