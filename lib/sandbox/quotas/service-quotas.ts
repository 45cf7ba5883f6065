import { randomUUID } from 'node:crypto';
import { type ApiCall, page, ServiceError } from '../wire/api-call';
import type { QuotaRow, QuotaStore } from './quota-store';

type IncreaseStatus = 'PENDING' | 'CASE_OPENED' | 'APPROVED' | 'DENIED';

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

/** Requests for quota increases. Nothing is granted automatically: a person (or a test) approves or denies. */
export class IncreaseRequests {
  private readonly requests: IncreaseRequest[] = [];

  constructor(private readonly quotas: QuotaStore) {}

  /** @throws ServiceError for a value that is not an increase, a second open request, or too many open requests */
  file({ account, region, caller }: ApiCall, row: QuotaRow, desiredValue: number): IncreaseRequest {
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
    const requester = caller.arn ?? caller.accessKeyId;
    const of = { account, region, code: row.code, quotaName: row.name, requester, desiredValue };
    const id = randomUUID().replaceAll('-', '');
    const request: IncreaseRequest = { id, status: 'PENDING', ...of, createdAt: now, updatedAt: now };
    this.requests.push(request);
    return request;
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

const SERVICE_CODE = 'sagemaker';
/** Fields that all quotas and requests of the service have in common. */
const COMMON = { ServiceCode: SERVICE_CODE, ServiceName: 'Amazon SageMaker', GlobalQuota: false, Unit: 'None' };
const DEFAULT_PAGE = 100;

/** The operations of Service Quotas, for the quotas of SageMaker. */
export function quotaOperations(quotas: QuotaStore, increases: IncreaseRequests) {
  const rowOf = (call: ApiCall): QuotaRow => {
    requireService(call);
    const row = quotas.find(call.account, call.region, String(call.input.QuotaCode));
    if (!row) throw missing('quota');
    return row;
  };
  return {
    GetServiceQuota: (call: ApiCall) => ({ Quota: quota(call, rowOf(call)) }),
    GetAWSDefaultServiceQuota: (call: ApiCall) => {
      const row = rowOf(call);
      return { Quota: quota(call, { ...row, value: row.defaultValue }) };
    },
    ListServiceQuotas: (call: ApiCall) => {
      requireService(call);
      const wanted = call.input.QuotaCode;
      const rows = quotas.rows(call.account, call.region).filter((row) => !wanted || row.code === wanted);
      const { items, nextToken } = page(rows, call.input, DEFAULT_PAGE);
      return { Quotas: items.map((row) => quota(call, row)), NextToken: nextToken };
    },
    RequestServiceQuotaIncrease: (call: ApiCall) => {
      const filed = increases.file(call, rowOf(call), Number(call.input.DesiredValue));
      return { RequestedQuota: requestedQuota(filed) };
    },
    ListRequestedServiceQuotaChangeHistoryByQuota: (call: ApiCall) => {
      const { code } = rowOf(call);
      const status = call.input.Status;
      const all = increases.list(call.account, call.region).filter((request) => request.code === code);
      const found = all.filter((request) => !status || request.status === status);
      const { items, nextToken } = page(found, call.input, DEFAULT_PAGE);
      return { RequestedQuotas: items.map(requestedQuota), NextToken: nextToken };
    },
  };
}

const missing = (what: string): ServiceError =>
  new ServiceError('NoSuchResourceException', `The request failed because the specified ${what} does not exist.`);

function requireService(call: ApiCall): void {
  if (call.input.ServiceCode !== SERVICE_CODE) throw missing('service');
}

const arn = (account: string, region: string, code: string) =>
  `arn:aws:servicequotas:${region}:${account}:${SERVICE_CODE}/${code}`;

function quota(call: ApiCall, row: QuotaRow): object {
  return {
    ...COMMON,
    QuotaArn: arn(call.account, call.region, row.code),
    QuotaCode: row.code,
    QuotaName: row.name,
    Value: row.value,
    Adjustable: true,
    QuotaAppliedAtLevel: 'ACCOUNT',
  };
}

function requestedQuota(request: IncreaseRequest): object {
  return {
    ...COMMON,
    Id: request.id,
    QuotaCode: request.code,
    QuotaName: request.quotaName,
    DesiredValue: request.desiredValue,
    Status: request.status,
    Created: request.createdAt / 1000,
    LastUpdated: request.updatedAt / 1000,
    Requester: JSON.stringify({ accountId: request.account, callerArn: request.requester }),
    QuotaArn: arn(request.account, request.region, request.code),
    QuotaRequestedAtLevel: 'ACCOUNT',
  };
}
