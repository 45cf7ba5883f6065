import {
  ListRequestedServiceQuotaChangeHistoryByQuotaCommand,
  RequestServiceQuotaIncreaseCommand,
} from '@aws-sdk/client-service-quotas';
import type { QuotaRow } from '../../quota';
import { isNamed } from '../shared/custom-resource';
import type { PreflightDeps } from './deps';

/** The service answers about five of these calls a second. */
const PAUSE_MS = 250;
const OPEN = new Set(['PENDING', 'CASE_OPENED']);

/**
 * Files one increase request per short quota, unless one is open, and says what came of each. Stops when the account's own
 * allowance of requests is used up (20 an account, 2 in an opt-in Region).
 */
export async function requestIncreases(deps: PreflightDeps, short: readonly QuotaRow[]): Promise<string[]> {
  const said: string[] = [];
  for (const row of short) {
    if (!row.code) continue;
    try {
      said.push(await requestIncrease(deps, row, row.code));
    } catch (error) {
      said.push(`${row.name} (${row.code}): not requested, ${(error as Error).name}: ${(error as Error).message}`);
      if (isNamed(error, 'QuotaExceededException')) break;
    }
    await deps.clock.sleep(PAUSE_MS);
  }
  return said;
}

async function requestIncrease(deps: PreflightDeps, row: QuotaRow, code: string): Promise<string> {
  const quota = { ServiceCode: 'sagemaker', QuotaCode: code };
  const history = await deps.quotas.send(new ListRequestedServiceQuotaChangeHistoryByQuotaCommand(quota));
  const open = history.RequestedQuotas?.find((request) => OPEN.has(request.Status ?? ''));
  if (open) return `${row.name} (${code}): ${open.DesiredValue} already requested (${open.Id}, ${open.Status})`;
  const { RequestedQuota } = await deps.quotas.send(
    new RequestServiceQuotaIncreaseCommand({ ...quota, DesiredValue: row.needed }),
  );
  return `${row.name} (${code}): ${row.needed} requested (${RequestedQuota?.Id}, ${RequestedQuota?.Status})`;
}
