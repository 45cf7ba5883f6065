import {
  paginateListRequestedServiceQuotaChangeHistoryByQuota,
  type RequestedServiceQuotaChange,
  RequestServiceQuotaIncreaseCommand,
  type ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';

const SERVICE = { ServiceCode: 'sagemaker' } as const;
const OPEN = ['PENDING', 'CASE_OPENED'];

/** What became of a request for more of a quota. */
export interface IncreaseRequest {
  code: string;
  desired: number;
  /** filed now, open already, or why it could not be filed. */
  state: 'filed' | 'open' | 'refused';
  detail: string;
}

/** A request as the service holds it. */
export interface HeldRequest {
  id: string;
  desired: number;
  status: string;
  /** The support case that decides it, where one was opened. */
  caseId?: string;
  /** When its status changed last. */
  updatedAt?: Date;
}

/** An open request of this quota, if there is one: only one may be open. */
export async function findOpenRequest(client: ServiceQuotasClient, code: string): Promise<HeldRequest | undefined> {
  const open = (await requestsOf(client, code)).find((r) => OPEN.includes(r.Status ?? ''));
  return open && heldRequest(open);
}

/** The newest request of this quota, whatever became of it. */
export async function findNewestRequest(client: ServiceQuotasClient, code: string): Promise<HeldRequest | undefined> {
  const all = await requestsOf(client, code);
  const [newest] = all.sort((a, b) => (b.Created?.getTime() ?? 0) - (a.Created?.getTime() ?? 0));
  return newest && heldRequest(newest);
}

/** All requests of this quota that the service still holds; it says nothing of their order, and gives them in pages. */
async function requestsOf(client: ServiceQuotasClient, code: string): Promise<RequestedServiceQuotaChange[]> {
  const found: RequestedServiceQuotaChange[] = [];
  const asked = { ...SERVICE, QuotaCode: code };
  for await (const page of paginateListRequestedServiceQuotaChangeHistoryByQuota({ client }, asked))
    found.push(...(page.RequestedQuotas ?? []));
  return found;
}

/** Files an increase. @throws what the service says, a QuotaExceededException when the account may file no more */
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
  caseId: change.CaseId,
  updatedAt: change.LastUpdated,
});

/** Files an increase once: an open request is reported, never repeated. Stops being useful at QuotaExceededException. */
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
