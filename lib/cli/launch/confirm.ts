import { clusterUsdPerHour, memoryIssues } from '../../core/admission';
import type { Descriptor } from '../../core/config/descriptor';
import { issue } from '../../core/config/issue';
import type { RunSpec } from '../../core/config/run-spec';
import { nearestPublished } from '../../core/planner/run/nearest-published';
import { usd } from '../../report/page/format';
import { ask } from '../ask';
import { Refusal } from '../exit';
import { findPlan } from '../plan/plan';
import { planText } from '../plan/text/plan-text';
import type { Terminal } from '../terminal';

/** Shows the expected cost of the run and asks for confirmation; returns whether an unknown price was accepted. */
export async function confirmCost(
  run: RunSpec,
  descriptor: Descriptor,
  yes: boolean,
  terminal: Terminal,
): Promise<boolean> {
  const price = clusterUsdPerHour(run, descriptor);
  const hours = run.limits.maxRuntimeSeconds / 3600;
  if (price) {
    const attempt = `${usd(price.usd * hours)} for an attempt of maxRuntimeSeconds (${hours.toFixed(1)} h)`;
    const cap = run.limits.maxCostUsd === undefined ? '' : `; the run stops at ${usd(run.limits.maxCostUsd)}`;
    terminal.err(`cost: ${usd(price.usd)} per hour, ${attempt}${cap}`);
    for (const note of price.notes) terminal.err(`  ${note}`);
    showPlan(run, descriptor, terminal);
  } else {
    terminal.err('cost: not known for this instance type and region');
    if (yes && run.limits.maxCostUsd === undefined) throw new Refusal([unknownPrice()]);
  }
  if (!yes) await ask(price ? 'Launch?' : 'Launch at an unknown price?');
  return price === undefined;
}

/** Shows the planner's prediction if the run's model is known. A run that cannot fit is rejected before it costs anything. */
function showPlan(run: RunSpec, descriptor: Descriptor, terminal: Terminal): void {
  const plan = findPlan(run, { region: descriptor.region, prices: descriptor.prices });
  if (!plan) return;
  terminal.err(planText(run, { ...plan, nearest: nearestPublished(plan.layout) }));
  const issues = memoryIssues(run, descriptor.region);
  if (issues.length > 0) throw new Refusal(issues);
}

const unknownPrice = () =>
  issue('limits/unknown-price', 'error', 'limits.maxCostUsd', {
    must: 'must be set with --yes when the price is not known',
    fix: 'add limits.maxCostUsd, add the rate to `prices` of the environment, or launch without --yes',
  });
