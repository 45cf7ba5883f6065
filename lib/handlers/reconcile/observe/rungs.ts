import { fitsMemory } from '../../../admission';
import { runOnRung } from '../../../lifecycle/ladder';
import type { Observed } from '../../../lifecycle/observed';
import type { RunRecord } from '../../../lifecycle/record';
import { neededToStart, type QuotaNeed, runQuotaNeeds } from '../../../quota';
import type { RunIntent } from '../../shared/items';
import type { ReconcileDeps } from '../deps';
import type { WholeRun } from './subject';

/**
 * A rung is chosen when an attempt is intended and, of several, while the run waits in the queue, while it is not known whether a job was made,
 * and when a job is over.
 * @param isOpen the attempt has no live job
 */
export const choosesRung = ({ admitted, policy }: RunRecord, launches: boolean, isOpen: boolean): boolean =>
  launches || (policy.ladder.length > 1 && (!admitted || isOpen));

/** Rungs on which no attempt can start now. */
export async function rungsThatCannotStart(
  deps: ReconcileDeps,
  whole: WholeRun,
): Promise<Pick<Observed, 'rungsThatDoNotFit' | 'rungsAboveQuota'>> {
  return { rungsThatDoNotFit: tooSmall(deps, whole), rungsAboveQuota: await aboveQuota(deps, whole) };
}

/** Rungs that do not fit, by the intent that names them: neither changes. */
const tooSmallOf = new WeakMap<RunIntent, string[]>();

/** Rungs of the ladder on which the planner knows that the run cannot fit. */
function tooSmall(deps: ReconcileDeps, { record, intent }: WholeRun): string[] {
  const known = tooSmallOf.get(intent);
  if (known) return known;
  const fits = (rungId: string) => fitsMemory(runOnRung(intent.spec, rungId), deps.region);
  const found = record.policy.ladder.filter((rung) => !fits(rung.id)).map((rung) => rung.id);
  tooSmallOf.set(intent, found);
  return found;
}

/**
 * Rungs whose needs are above the applied quota: the service refuses them however long they wait. A limit that cannot be read refuses
 * nothing, and a ladder of one rung needs no choice.
 */
async function aboveQuota(deps: ReconcileDeps, { record, intent }: WholeRun): Promise<string[]> {
  const { ladder } = record.policy;
  if (ladder.length < 2) return [];
  const needs = ladder.map(({ id }) => ({ id, needs: neededToStart(runQuotaNeeds(runOnRung(intent.spec, id))) }));
  const limits = await deps.limits.read(needs.flatMap((rung) => rung.needs));
  const isAbove = ({ name, needed }: QuotaNeed) => {
    const limit = limits.get(name);
    return limit !== undefined && 'value' in limit && needed > limit.value;
  };
  return needs.filter((rung) => rung.needs.some(isAbove)).map(({ id }) => id);
}
