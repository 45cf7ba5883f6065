import { fitsMemory } from '../../../core/admission';
import { runOnRung } from '../../../core/lifecycle/ladder';
import type { Observed } from '../../../core/lifecycle/observed';
import type { RunRecord } from '../../../core/lifecycle/record';
import { type Limits, neededToStart, type QuotaNeed, runQuotaNeeds } from '../../../core/quota';
import type { RunIntent } from '../../shared/items';
import type { ReconcileDeps } from '../deps';
import type { WholeRun } from './subject';

/**
 * Whether this pass may choose a rung: when an attempt is prepared and, if there are several rungs, while the run waits in the queue, while
 * it is not known whether a job was created, and when a job is over.
 * @param isOpen the attempt has no live job
 */
export const choosesRung = ({ admitted, policy }: RunRecord, launches: boolean, isOpen: boolean): boolean =>
  launches || (policy.ladder.length > 1 && (!admitted || isOpen));

/** Rungs on which no attempt can start now. A ladder of one rung needs no choice, so that no quota is read for it. */
export async function rungsThatCannotStart(
  deps: ReconcileDeps,
  whole: WholeRun,
): Promise<Pick<Observed, 'rungsThatDoNotFit' | 'rungsAboveQuota'>> {
  const needs = ladderNeeds(whole);
  const limits = needs.length > 0 ? await deps.limits.read(needs.flatMap((rung) => rung.needs)) : NO_LIMITS;
  return rungsWithin(deps, whole, limits);
}

const NO_LIMITS: Limits = new Map();

/**
 * The same under limits that were read. Above the applied quota the service refuses a job however long it waits; a limit that could not be
 * read refuses nothing.
 */
export function rungsWithin(
  { region }: Pick<ReconcileDeps, 'region'>,
  whole: Pick<WholeRun, 'record' | 'intent'>,
  limits: Limits,
): Pick<Observed, 'rungsThatDoNotFit' | 'rungsAboveQuota'> {
  const isAbove = ({ name, needed }: QuotaNeed) => {
    const limit = limits.get(name);
    return limit !== undefined && 'value' in limit && needed > limit.value;
  };
  const above = ladderNeeds(whole).filter((rung) => rung.needs.some(isAbove));
  return { rungsThatDoNotFit: tooSmall(region, whole), rungsAboveQuota: above.map(({ id }) => id) };
}

/** What follows from an intent and its ladder, neither of which changes. */
const byIntent = <T>() => new WeakMap<RunIntent, T>();
const tooSmallOf = byIntent<string[]>();
const needsOf = byIntent<{ id: string; needs: QuotaNeed[] }[]>();

/** Rungs of the ladder on which the planner knows that the run does not fit into memory. */
function tooSmall(region: string, { record, intent }: Pick<WholeRun, 'record' | 'intent'>): string[] {
  const known = tooSmallOf.get(intent);
  if (known) return known;
  const fits = (rungId: string) => fitsMemory(runOnRung(intent.spec, rungId), region);
  const found = record.policy.ladder.filter((rung) => !fits(rung.id)).map((rung) => rung.id);
  tooSmallOf.set(intent, found);
  return found;
}

/** Quotas that each of several rungs needs; empty for a ladder of one. */
export function ladderNeeds({
  record,
  intent,
}: Pick<WholeRun, 'record' | 'intent'>): { id: string; needs: QuotaNeed[] }[] {
  const { ladder } = record.policy;
  if (ladder.length < 2) return [];
  const needsOn = (id: string) => neededToStart(runQuotaNeeds(runOnRung(intent.spec, id)));
  const found = needsOf.get(intent) ?? ladder.map(({ id }) => ({ id, needs: needsOn(id) }));
  needsOf.set(intent, found);
  return found;
}
