import { ListServiceQuotasCommand } from '@aws-sdk/client-service-quotas';
import type { QuotaNeed } from '../../quota';
import type { PreflightDeps } from './deps';

/** ListServiceQuotas answers ten calls a second; about 23 pages hold the SageMaker quotas of one Region. */
const PAGE_PAUSE_MS = 100;
const PAGE_SIZE = 100;

/**
 * Puts in the codes that the catalog does not know, by name, as this Region lists them. A name that the Region does not list
 * stays without a code. A page may be short with more to come, so that only the missing token ends the list.
 */
export async function findCodes(deps: PreflightDeps, needs: readonly QuotaNeed[]): Promise<QuotaNeed[]> {
  const wanted = new Set(needs.filter((need) => !need.code).map((need) => need.name));
  if (wanted.size === 0) return [...needs];
  const codes = new Map<string, string>();
  let token: string | undefined;
  do {
    const page = await deps.quotas.send(
      new ListServiceQuotasCommand({ ServiceCode: 'sagemaker', MaxResults: PAGE_SIZE, NextToken: token }),
    );
    for (const { QuotaName, QuotaCode } of page.Quotas ?? [])
      if (QuotaName && QuotaCode && wanted.has(QuotaName)) codes.set(QuotaName, QuotaCode);
    token = page.NextToken;
    if (token) await deps.clock.sleep(PAGE_PAUSE_MS);
  } while (token && codes.size < wanted.size);
  return needs.map((need) => ({ ...need, code: need.code ?? codes.get(need.name) }));
}
