import { fitsMemory } from '../../../core/admission';
import { runWithCapacityOption } from '../../../core/lifecycle/capacity-options';
import type { Observed } from '../../../core/lifecycle/observed';
import type { RunRecord } from '../../../core/lifecycle/record';
import { neededToStart, type QuotaNeed, runQuotaNeeds } from '../../../core/quota';
import type { RunIntent } from '../../shared/items';
import type { ReconcileDeps } from '../deps';
import type { WholeRun } from './subject';

/**
 * Whether this pass may choose a capacity option: when an attempt is prepared and, if there are several capacity options, while the run
 * waits in the queue, while it is not known whether a job was created, and when a job is over.
 * @param isOpen the attempt has no live job
 */
export const choosesOption = ({ admitted, policy }: RunRecord, launches: boolean, isOpen: boolean): boolean =>
  launches || (policy.capacityOptions.length > 1 && (!admitted || isOpen));

/**
 * Capacity options on which no attempt can start now. Above the applied quota the service refuses a job however long it waits; a limit that
 * could not be read refuses nothing. A single capacity option needs no choice, so that no quota is read for it.
 */
export async function optionsThatCannotStart(
  deps: Pick<ReconcileDeps, 'limits' | 'region'>,
  whole: Pick<WholeRun, 'record' | 'intent'>,
): Promise<Pick<Observed, 'optionsThatDoNotFit' | 'optionsAboveQuota'>> {
  const needs = optionNeeds(whole);
  const limits = await deps.limits.read(needs.flatMap((option) => option.needs));
  const isAbove = ({ name, needed }: QuotaNeed) => {
    const limit = limits.get(name);
    return limit !== undefined && 'value' in limit && needed > limit.value;
  };
  const above = needs.filter((option) => option.needs.some(isAbove));
  return { optionsThatDoNotFit: tooSmall(deps.region, whole), optionsAboveQuota: above.map(({ id }) => id) };
}

/** What follows from an intent and its capacity options, neither of which changes. */
const tooSmallOf = new WeakMap<RunIntent, string[]>();

/** Capacity options on which the planner knows that the run does not fit into memory. */
function tooSmall(region: string, { record, intent }: Pick<WholeRun, 'record' | 'intent'>): string[] {
  const known = tooSmallOf.get(intent);
  if (known) return known;
  const fits = (capacityOptionId: string) => fitsMemory(runWithCapacityOption(intent.spec, capacityOptionId), region);
  const found = record.policy.capacityOptions.filter((option) => !fits(option.id)).map((option) => option.id);
  tooSmallOf.set(intent, found);
  return found;
}

/** Quotas that each of several capacity options needs; empty for a single capacity option. */
function optionNeeds({ record, intent }: Pick<WholeRun, 'record' | 'intent'>): { id: string; needs: QuotaNeed[] }[] {
  const { capacityOptions } = record.policy;
  if (capacityOptions.length < 2) return [];
  const needsOn = (id: string) => neededToStart(runQuotaNeeds(runWithCapacityOption(intent.spec, id)));
  return capacityOptions.map(({ id }) => ({ id, needs: needsOn(id) }));
}
