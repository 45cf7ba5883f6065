import type { QuotaNeed } from '../../core/quota';
import { findQuotasByName } from '../../shared/aws/quota-listing';
import type { PreflightDeps } from './deps';

/**
 * Adds quota codes that the catalog does not contain, by looking up the quota name in this Region. A name that the Region does not list
 * stays without a code.
 */
export async function findCodes(deps: PreflightDeps, needs: readonly QuotaNeed[]): Promise<QuotaNeed[]> {
  const names = needs.filter((need) => !need.code).map((need) => need.name);
  if (names.length === 0) return [...needs];
  const codes = new Map<string, string | undefined>();
  for await (const { QuotaName, QuotaCode } of findQuotasByName(deps.quotas, names, (ms) => deps.clock.sleep(ms)))
    codes.set(QuotaName, QuotaCode);
  return needs.map((need) => ({ ...need, code: need.code ?? codes.get(need.name) }));
}
