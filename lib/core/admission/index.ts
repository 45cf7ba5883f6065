import type { Descriptor } from '../config/descriptor';
import { hasErrors, type Issue, issue } from '../config/issue';
import { onInstances } from '../config/resolve-run';
import type { RunSpec } from '../config/run-spec';
import { freeOf, judgeForDeploy, type Limits, neededToStart, type QuotaRow, runQuotaNeeds } from '../quota';
import { checkRun } from '../rules';
import { elasticSizes } from '../rules/compute/elastic';
import { memoryIssues } from './memory';
import { plannedCostIssues, priceIssues } from './price';

export * from './memory';
export * from './price';
export * from './training-plan';

/** Waiting does not help above the limit; if only the free capacity is exceeded, the run waits in the queue. */
const isAboveLimit = (row: QuotaRow): boolean => row.limit !== null && row.needed > row.limit;

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

/** Facts on which admission is based. */
interface AdmissionFacts {
  descriptor: Descriptor;
  region: string;
  /** Applied limits by quota name; a quota that is missing is unknown and blocks nothing. */
  limits: Limits;
  /** A person has confirmed the launch although the price is unknown. */
  acceptsUnknownPrice: boolean;
}

/** The result of admission before a run gets capacity: errors and warnings, and the numbers on which they are based. */
interface AdmissionVerdict {
  /** No issue is an error: the run may join the queue. */
  isAdmitted: boolean;
  issues: Issue[];
  quota: QuotaRow[];
}

/**
 * Checks memory, price, cost, quota, guardrails and all other rules for one launch, in the same way for the command line, the control plane
 * and simulations. Needs that exceed only the free capacity are not errors: such a run waits in the queue.
 */
export function judgeAdmission(
  run: RunSpec,
  { descriptor, region, limits, acceptsUnknownPrice }: AdmissionFacts,
): AdmissionVerdict {
  const quota = judgeForDeploy(runQuotaNeeds(run), limits);
  const prices = { ...descriptor, region };
  const issues = [
    ...checkRun(run, { descriptor, region }),
    ...priceIssues(run, prices, acceptsUnknownPrice),
    ...memoryIssues(run, region),
    ...plannedCostIssues(run, prices),
    ...limitIssues(run, quota, limits),
  ];
  return { isAdmitted: !hasErrors(issues), issues, quota };
}

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
