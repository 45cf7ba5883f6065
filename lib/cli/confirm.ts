import { confirm, isCancel } from '@clack/prompts';
import { findPrice } from '../catalog/prices';
import { usd } from '../report/page/format';
import type { Descriptor } from '../spec/descriptor';
import { issue } from '../spec/issue';
import { requestedGroupsOf } from '../spec/resolve-run';
import type { RunSpec } from '../spec/run-spec';
import { Refusal, UsageError } from './exit';
import { findPlan } from './plan';
import { planText } from './plan-text';
import type { Terminal } from './terminal';

/** USD of all hosts of a job for one hour; undefined when a price is not known. */
export function clusterUsdPerHour(run: RunSpec, descriptor: Descriptor): { usd: number; notes: string[] } | undefined {
  let usd = 0;
  const notes = new Set<string>();
  for (const group of requestedGroupsOf(run.compute)) {
    const price = findPrice(group.instanceType, descriptor.region, descriptor.prices);
    if (!price) return undefined;
    usd += price.usdPerHour * group.instanceCount;
    notes.add(`${group.instanceType}: ${price.note}`);
  }
  return { usd, notes: [...notes] };
}

/** Shows what the run may cost and asks; answers whether an unknown price was accepted. */
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
    terminal.err(`cost: ${usd(price.usd)} an hour, ${attempt}${cap}`);
    for (const note of price.notes) terminal.err(`  ${note}`);
    showPlan(run, descriptor, terminal);
  } else {
    terminal.err('cost: not known for this instance type and region');
    if (yes && run.limits.maxCostUsd === undefined) throw new Refusal([unknownPrice()]);
  }
  if (!yes) await ask(price ? 'Launch?' : 'Launch at an unknown price?');
  return price === undefined;
}

/** What the planner expects, for runs whose model it knows. A run that cannot fit is refused before it costs anything. */
function showPlan(run: RunSpec, descriptor: Descriptor, terminal: Terminal): void {
  const plan = findPlan(run, { region: descriptor.region, prices: descriptor.prices });
  if (!plan) return;
  terminal.err(planText(run, plan));
  if (plan.fits !== 'oom') return;
  const fix = plan.advice.map((a) => a.change).join(', or ') || 'use more instances, or a smaller batch';
  throw new Refusal([
    issue('plan/memory', 'error', 'training', {
      must: `must fit the ${plan.memoryGiB.available.toFixed(0)} GiB of one GPU`,
      got: `${plan.memoryGiB.total.toFixed(0)} GiB`,
      fix,
    }),
  ]);
}

const unknownPrice = () =>
  issue('limits/unknown-price', 'error', 'limits.maxCostUsd', {
    must: 'must be given with --yes when the price is not known',
    fix: 'add limits.maxCostUsd, put the rate into `prices` of the environment, or launch without --yes',
  });

/** A question that must be answered with yes; no terminal to ask on is wrong usage. */
export async function ask(message: string, verb = 'launch'): Promise<void> {
  if (!process.stdin.isTTY) throw new UsageError(`${verb}: must be confirmed, got no terminal to ask on; add --yes`);
  const answer = await confirm({ message, initialValue: false });
  if (isCancel(answer) || !answer) throw new UsageError(`${verb}: not confirmed; nothing was started`);
}
