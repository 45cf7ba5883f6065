import type { QuotaRow } from '../../core/quota';
import { fileIncrease, findOpenRequest } from '../../shared/aws/quota-increase';
import { isNamed } from '../shared/custom-resource';
import type { PreflightDeps } from './deps';

/** The service accepts about five of these calls per second. */
const PAUSE_MS = 250;

/**
 * Submits one increase request per insufficient quota unless one is open, and reports each outcome. Stops when the account's limit on open
 * requests is reached (20 per account, 2 in an opt-in Region).
 */
export async function requestIncreases(deps: PreflightDeps, short: readonly QuotaRow[]): Promise<string[]> {
  const lines: string[] = [];
  for (const row of short) {
    if (!row.code) continue;
    try {
      lines.push(await requestIncrease(deps, row, row.code));
    } catch (error) {
      lines.push(`${row.name} (${row.code}): not requested, ${(error as Error).name}: ${(error as Error).message}`);
      if (isNamed(error, 'QuotaExceededException')) break;
    }
    await deps.clock.sleep(PAUSE_MS);
  }
  return lines;
}

async function requestIncrease(deps: PreflightDeps, row: QuotaRow, code: string): Promise<string> {
  const open = await findOpenRequest(deps.quotas, code);
  if (open) return `${row.name} (${code}): ${open.desired} already requested (${open.id}, ${open.status})`;
  const filed = await fileIncrease(deps.quotas, code, row.needed);
  return `${row.name} (${code}): ${row.needed} requested (${filed.id}, ${filed.status})`;
}
