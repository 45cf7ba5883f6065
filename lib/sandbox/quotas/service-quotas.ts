import type { ApiCall } from '../wire/api-call';
import { page } from '../wire/page';
import { ServiceError } from '../wire/service-error';
import type { IncreaseRequest, IncreaseRequests } from './increase-requests';
import type { QuotaRow, QuotaStore } from './quota-store';

const SERVICE_CODE = 'sagemaker';
const SERVICE_NAME = 'Amazon SageMaker';
const DEFAULT_PAGE = 100;

type Operation = (call: ApiCall) => unknown;

/** The operations of the Service Quotas API, for the quotas of SageMaker. */
export class ServiceQuotas {
  readonly operations: Readonly<Record<string, Operation>> = {
    ListServices: () => ({ Services: [{ ServiceCode: SERVICE_CODE, ServiceName: SERVICE_NAME }] }),
    GetServiceQuota: (call) => ({ Quota: appliedQuota(call, this.row(call)) }),
    GetAWSDefaultServiceQuota: (call) => ({ Quota: defaultQuota(call, this.row(call)) }),
    ListServiceQuotas: (call) => this.list(call, appliedQuota),
    ListAWSDefaultServiceQuotas: (call) => this.list(call, defaultQuota),
    RequestServiceQuotaIncrease: (call) => this.request(call),
    GetRequestedServiceQuotaChange: (call) => this.requested(call),
    ListRequestedServiceQuotaChangeHistory: (call) => this.history(call, () => true),
    ListRequestedServiceQuotaChangeHistoryByQuota: (call) => {
      this.row(call);
      return this.history(call, (request) => request.code === call.input.QuotaCode);
    },
  };

  constructor(
    private readonly quotas: QuotaStore,
    private readonly increases: IncreaseRequests,
  ) {}

  private row(call: ApiCall): QuotaRow {
    requireService(call);
    const row = this.quotas.find(call.account, call.region, String(call.input.QuotaCode));
    if (!row) {
      throw new ServiceError(
        'NoSuchResourceException',
        'The request failed because the specified quota does not exist.',
      );
    }
    return row;
  }

  private list(call: ApiCall, render: (call: ApiCall, row: QuotaRow) => unknown): unknown {
    requireService(call);
    const wanted = call.input.QuotaCode;
    const rows = this.quotas.rows(call.account, call.region).filter((row) => !wanted || row.code === wanted);
    const { items, nextToken } = page(rows, call.input, DEFAULT_PAGE);
    return { Quotas: items.map((row) => render(call, row)), NextToken: nextToken };
  }

  private request(call: ApiCall): unknown {
    const desired = Number(call.input.DesiredValue);
    const requester = call.caller.arn ?? call.caller.accessKeyId;
    const filed = this.increases.file(call.account, call.region, this.row(call), { desiredValue: desired, requester });
    return { RequestedQuota: requestedQuota(filed) };
  }

  private requested(call: ApiCall): unknown {
    const found = this.increases.find(call.account, call.region, String(call.input.RequestId));
    if (!found) {
      throw new ServiceError(
        'NoSuchResourceException',
        'The request failed because the specified request does not exist.',
      );
    }
    return { RequestedQuota: requestedQuota(found) };
  }

  private history(call: ApiCall, wanted: (request: IncreaseRequest) => boolean): unknown {
    if (call.input.ServiceCode !== undefined) requireService(call);
    const status = call.input.Status;
    const found = this.increases
      .list(call.account, call.region)
      .filter((request) => wanted(request) && (!status || request.status === status));
    const { items, nextToken } = page(found, call.input, DEFAULT_PAGE);
    return { RequestedQuotas: items.map(requestedQuota), NextToken: nextToken };
  }
}

function requireService(call: ApiCall): void {
  if (call.input.ServiceCode === SERVICE_CODE) return;
  throw new ServiceError('NoSuchResourceException', 'The request failed because the specified service does not exist.');
}

const arn = (account: string, region: string, code: string) =>
  `arn:aws:servicequotas:${region}:${account}:${SERVICE_CODE}/${code}`;

function quota(call: ApiCall, row: QuotaRow, value: number): object {
  return {
    ServiceCode: SERVICE_CODE,
    ServiceName: SERVICE_NAME,
    QuotaArn: arn(call.account, call.region, row.code),
    QuotaCode: row.code,
    QuotaName: row.name,
    Value: value,
    Unit: 'None',
    Adjustable: true,
    GlobalQuota: false,
    QuotaAppliedAtLevel: 'ACCOUNT',
  };
}

const appliedQuota = (call: ApiCall, row: QuotaRow) => quota(call, row, row.value);
const defaultQuota = (call: ApiCall, row: QuotaRow) => quota(call, row, row.defaultValue);

function requestedQuota(request: IncreaseRequest): object {
  return {
    Id: request.id,
    ServiceCode: SERVICE_CODE,
    ServiceName: SERVICE_NAME,
    QuotaCode: request.code,
    QuotaName: request.quotaName,
    DesiredValue: request.desiredValue,
    Status: request.status,
    Created: request.createdAt / 1000,
    LastUpdated: request.updatedAt / 1000,
    Requester: JSON.stringify({ accountId: request.account, callerArn: request.requester }),
    QuotaArn: arn(request.account, request.region, request.code),
    GlobalQuota: false,
    Unit: 'None',
    QuotaRequestedAtLevel: 'ACCOUNT',
  };
}
