import { type Issue, issue } from '../config/issue';
import { freeOf, type QuotaRow } from '../quota';

/** Waiting does not help above the limit; if only the free capacity is exceeded, the run waits in the queue. */
export const isAboveLimit = (row: QuotaRow): boolean => row.limit !== null && row.needed > row.limit;

/** Issues of a launch from a table of needs: an error above a limit, a warning if the run has to wait or a value is unknown. */
export function quotaIssues(rows: readonly QuotaRow[]): Issue[] {
  return rows.filter((row) => row.verdict !== 'enough').map(quotaIssue);
}

function quotaIssue(row: QuotaRow): Issue {
  const quota = `quota ${row.name}${row.code ? `, ${row.code}` : ''}`;
  const found = (level: 'error' | 'warning', must: string, fix: string) =>
    issue('quota/limit', level, row.wantedBy, { must, got: row.needed, fix });
  if (row.limit === null) return found('warning', `must be known: ${row.name}`, row.reason);
  if (row.isOptional) {
    const must = `must find ${row.needed} instances free (${quota}), without which SageMaker keeps no warm pool`;
    const fix = 'request an increase with slipway quota --request, or remove it';
    return issue('quota/limit', 'warning', 'compute.keepAliveSeconds', {
      must,
      got: freeOf(row.limit, row.inUse ?? 0),
      fix,
    });
  }
  if (isAboveLimit(row)) {
    return found(
      'error',
      `must be at most ${row.limit} (${quota})`,
      `${row.wantedBy.startsWith('compute.alternatives') ? 'leave it out, ' : ''}lower it, or request an increase with slipway quota --request`,
    );
  }
  const free = row.limit - (row.inUse ?? 0);
  return found('warning', `must be at most ${free} (${quota})`, 'wait for running jobs to end, or lower it');
}
