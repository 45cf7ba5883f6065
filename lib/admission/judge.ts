import { judgeForDeploy, type Limits, type QuotaRow, runQuotaNeeds } from '../quota';
import { checkRun } from '../rules';
import { refuseUnsupported } from '../rules/model/support';
import type { Descriptor } from '../spec/descriptor';
import { hasErrors, type Issue } from '../spec/issue';
import type { RunSpec } from '../spec/run-spec';
import { limitIssues } from './elastic';
import { memoryIssues } from './memory';
import { plannedCostIssues, priceIssues } from './price';

/** What a launch is judged against. */
export interface AdmissionFacts {
  descriptor: Descriptor;
  region: string;
  /** Applied limits by quota name; a name without one is unknown, and holds nothing back. */
  limits: Limits;
  /** A person has confirmed the launch although the price is unknown. */
  acceptsUnknownPrice: boolean;
}

/** What admission says of a run before it takes capacity: its refusals and warnings, and the numbers that they rest on. */
export interface AdmissionVerdict {
  /** No issue is an error: the run may join the queue. */
  isAdmitted: boolean;
  issues: Issue[];
  quota: QuotaRow[];
}

/**
 * Everything that memory, price, cost, quota, guardrails and the other rules say of one launch: the same for the command line, the control
 * plane and simulations. Needs above what is free are not judged here: the queue lets such a run wait.
 */
export function judgeAdmission(
  run: RunSpec,
  { descriptor, region, limits, acceptsUnknownPrice }: AdmissionFacts,
): AdmissionVerdict {
  const quota = judgeForDeploy(runQuotaNeeds(run), limits);
  const prices = { region, prices: descriptor.prices };
  const issues = [
    ...refuseUnsupported(checkRun(run, { descriptor, region })),
    ...priceIssues(run, prices, acceptsUnknownPrice),
    ...memoryIssues(run, region),
    ...plannedCostIssues(run, prices),
    ...limitIssues(run, quota, limits),
  ];
  return { isAdmitted: !hasErrors(issues), issues, quota };
}
