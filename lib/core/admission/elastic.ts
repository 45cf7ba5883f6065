import { type Issue, issue } from '../config/issue';
import { onInstances } from '../config/resolve-run';
import type { RunSpec } from '../config/run-spec';
import { judgeForDeploy, type Limits, neededToStart, type QuotaRow, runQuotaNeeds } from '../quota';
import { elasticSizes } from '../rules/compute/elastic';
import { isAboveLimit, quotaIssues } from './quota-issues';

/**
 * The run with the largest number of instances within the limits; with its smallest number if no size is within them; unchanged if it is
 * not elastic.
 */
export function withinLimits(run: RunSpec, limits: Limits): RunSpec {
  const sizes = elasticSizes(run).map((count) => onInstances(run, count));
  const isAllowed = (sized: RunSpec) => !judgeForDeploy(neededToStart(runQuotaNeeds(sized)), limits).some(isAboveLimit);
  return sizes.find(isAllowed) ?? sizes.at(-1) ?? run;
}

/** Quota issues of a launch: for an elastic run an error if even its smallest size is above a limit, otherwise a warning. */
export function limitIssues(run: RunSpec, rows: readonly QuotaRow[], limits: Limits): Issue[] {
  const sized = withinLimits(run, limits);
  if (sized.compute.instanceCount === run.compute.instanceCount) return quotaIssues(rows.filter(isAboveLimit));
  const above = judgeForDeploy(runQuotaNeeds(sized), limits).filter(isAboveLimit);
  if (above.length > 0) return quotaIssues(above);
  return rows.filter(isAboveLimit).map((row) =>
    issue('quota/limit', 'warning', row.wantedBy, {
      must: `must be at most ${row.limit} (quota ${row.name}${row.code ? `, ${row.code}` : ''}) for all of its instances`,
      got: row.needed,
      fix: `it starts with at most ${sized.compute.instanceCount}; request an increase with slipway quota --request`,
    }),
  );
}
