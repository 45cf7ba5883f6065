import {
  ListServiceQuotasCommand,
  type ListServiceQuotasCommandOutput,
  type ServiceQuota,
  type ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';

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
