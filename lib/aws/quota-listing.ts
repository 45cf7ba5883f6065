import {
  ListServiceQuotasCommand,
  type ListServiceQuotasCommandOutput,
  type ServiceQuota,
  type ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';

/** ListServiceQuotas answers ten calls a second; about 23 pages hold the SageMaker quotas of one Region. */
const PAGE_PAUSE_MS = 100;
const PAGE_SIZE = 100;

/** Waits between calls; injected so that tests need no clock. */
export type Pause = (milliseconds: number) => Promise<void>;

/**
 * The SageMaker quotas of these names, as one listing of the Region gives them; it ends with the last name that was wanted. A
 * name that the Region does not list does not come. A page may be short with more to come, so that only the missing token ends
 * the list.
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
