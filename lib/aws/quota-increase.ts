import {
  ListRequestedServiceQuotaChangeHistoryByQuotaCommand,
  RequestServiceQuotaIncreaseCommand,
  type ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';

const SERVICE = { ServiceCode: 'sagemaker' } as const;
const OPEN = ['PENDING', 'CASE_OPENED'];

export interface IncreaseRequest {
  code: string;
  desired: number;
  /** filed now, open already, or why it could not be filed. */
  state: 'filed' | 'open' | 'refused';
  detail: string;
}

/** An open request of this quota, if there is one: only one may be open. */
export async function findOpenRequest(
  client: ServiceQuotasClient,
  code: string,
): Promise<{ desired: number; status: string } | undefined> {
  const { RequestedQuotas } = await client.send(
    new ListRequestedServiceQuotaChangeHistoryByQuotaCommand({ ...SERVICE, QuotaCode: code }),
  );
  const open = RequestedQuotas?.find((r) => OPEN.includes(r.Status ?? ''));
  return open && { desired: open.DesiredValue ?? 0, status: open.Status ?? '' };
}

/** Files an increase once: an open request is reported, never repeated. Stops being useful at QuotaExceededException. */
export async function requestIncrease(
  client: ServiceQuotasClient,
  code: string,
  desired: number,
): Promise<IncreaseRequest> {
  const open = await findOpenRequest(client, code);
  if (open) return { code, desired: open.desired, state: 'open', detail: open.status };
  try {
    const answer = await client.send(
      new RequestServiceQuotaIncreaseCommand({ ...SERVICE, QuotaCode: code, DesiredValue: desired }),
    );
    return { code, desired, state: 'filed', detail: answer.RequestedQuota?.Id ?? '' };
  } catch (error) {
    const { name, message } = error as Error;
    if (name === 'ResourceAlreadyExistsException') return { code, desired, state: 'open', detail: message };
    return { code, desired, state: 'refused', detail: `${name}: ${message}` };
  }
}
