import type { Descriptor } from '../config/descriptor';
import { hasErrors, type Issue } from '../config/issue';
import type { RunSpec } from '../config/run-spec';
import { judgeForDeploy, type Limits, type QuotaRow, runQuotaNeeds } from '../quota';
import { checkRun } from '../rules';
import { refuseUnsupported } from '../rules/model/support';
import { limitIssues } from './elastic';
import { memoryIssues } from './memory';
import { plannedCostIssues, priceIssues } from './price';

/** Facts on which admission is based. */
export interface AdmissionFacts {
  descriptor: Descriptor;
  region: string;
  /** Applied limits by quota name; a quota that is missing is unknown and blocks nothing. */
  limits: Limits;
  /** A person has confirmed the launch although the price is unknown. */
  acceptsUnknownPrice: boolean;
}

/** The result of admission before a run gets capacity: errors and warnings, and the numbers on which they are based. */
export interface AdmissionVerdict {
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
    ...refuseUnsupported(checkRun(run, { descriptor, region })),
    ...priceIssues(run, prices, acceptsUnknownPrice),
    ...memoryIssues(run, region),
    ...plannedCostIssues(run, prices),
    ...limitIssues(run, quota, limits),
  ];
  return { isAdmitted: !hasErrors(issues), issues, quota };
}
