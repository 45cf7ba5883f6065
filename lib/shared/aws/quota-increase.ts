import {
  ListServiceQuotasCommand,
  type ListServiceQuotasCommandOutput,
  paginateListRequestedServiceQuotaChangeHistoryByQuota,
  type RequestedServiceQuotaChange,
  RequestServiceQuotaIncreaseCommand,
  type ServiceQuota,
  type ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { itemsOf } from './pages';

const SERVICE = { ServiceCode: 'sagemaker' } as const;
const OPEN = ['PENDING', 'CASE_OPENED'];

export interface IncreaseRequest {
  code: string;
  desired: number;
  /** Filed now, already open, or rejected when it was filed. */
  state: 'filed' | 'open' | 'refused';
  detail: string;
}

/** A quota increase request as returned by the service. */
export interface HeldRequest {
  id: string;
  desired: number;
  status: string;
}

/** The open request for this quota, if any: there can be only one. */
export async function findOpenRequest(client: ServiceQuotasClient, code: string): Promise<HeldRequest | undefined> {
  const requested = { ...SERVICE, QuotaCode: code };
  const pages = paginateListRequestedServiceQuotaChangeHistoryByQuota({ client }, requested);
  const open = (await itemsOf(pages, (page) => page.RequestedQuotas)).find(({ Status = '' }) => OPEN.includes(Status));
  return open && heldRequest(open);
}

/** Files an increase. @throws the error of the service: QuotaExceededException when the account has too many open requests */
export async function fileIncrease(client: ServiceQuotasClient, code: string, desired: number): Promise<HeldRequest> {
  const { RequestedQuota = {} } = await client.send(
    new RequestServiceQuotaIncreaseCommand({ ...SERVICE, QuotaCode: code, DesiredValue: desired }),
  );
  return heldRequest({ DesiredValue: desired, ...RequestedQuota });
}

const heldRequest = (change: RequestedServiceQuotaChange): HeldRequest => ({
  id: change.Id ?? '',
  desired: change.DesiredValue ?? 0,
  status: change.Status ?? '',
});

/** Files an increase once: an open request is reported, not repeated. After a QuotaExceededException, further requests fail too. */
export async function requestIncrease(
  client: ServiceQuotasClient,
  code: string,
  desired: number,
): Promise<IncreaseRequest> {
  const open = await findOpenRequest(client, code);
  if (open) return { code, desired: open.desired, state: 'open', detail: open.status };
  try {
    const { id } = await fileIncrease(client, code, desired);
    return { code, desired, state: 'filed', detail: id };
  } catch (error) {
    const { name, message } = error as Error;
    if (name === 'ResourceAlreadyExistsException') return { code, desired, state: 'open', detail: message };
    return { code, desired, state: 'refused', detail: `${name}: ${message}` };
  }
}

/** ListServiceQuotas allows ten calls per second; the SageMaker quotas of a Region fill about 23 pages. */
const PAGE_PAUSE_MS = 100;
const PAGE_SIZE = 100;

/** Waits between calls; injected so that tests do not depend on a clock. */
export type Pause = (milliseconds: number) => Promise<void>;

/**
 * The SageMaker quotas with these names, from one listing of the Region, which stops when all names are found. Names that the Region does
 * not list are omitted. A page may be short although more pages follow, so only a missing token ends the list.
 */
export async function* findQuotasByName(
  client: ServiceQuotasClient,
  names: readonly string[],
  pause: Pause,
): AsyncGenerator<ServiceQuota & { QuotaName: string }> {
  const wanted = new Set(names);
  let NextToken: string | undefined;
  do {
    const request = { ServiceCode: 'sagemaker', MaxResults: PAGE_SIZE, NextToken };
    const page: ListServiceQuotasCommandOutput = await client.send(new ListServiceQuotasCommand(request));
    for (const quota of page.Quotas ?? []) {
      const { QuotaName } = quota;
      if (QuotaName && wanted.delete(QuotaName)) yield { ...quota, QuotaName };
    }
    NextToken = page.NextToken;
    if (NextToken && wanted.size > 0) await pause(PAGE_PAUSE_MS);
  } while (NextToken && wanted.size > 0);
}
