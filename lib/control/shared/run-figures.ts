import type { StatusAnswer } from '../../core/contracts/control';
import { type FleetRun, fleetRun, isAlike } from '../../core/lifecycle/accounting/fleet-rate';
import { outlook } from '../../core/lifecycle/accounting/outlook';
import type { TimelineEvent } from '../../core/lifecycle/action';
import { ledger } from '../../core/lifecycle/ledger';
import { type EpochMs, isOver, type RunRecord } from '../../core/lifecycle/record';
import { isoOf } from './run-answer';

/** The part of an answer about a run that needs its whole timeline. */
export type RunFigures = Pick<
  StatusAnswer,
  'goodput' | 'progressPercent' | 'etaAt' | 'etaInterval80' | 'interruptions'
>;

/** Number of the team's newest runs from which the end of a run is predicted. */
export const FLEET = 40;

/**
 * Goodput, interruptions and expected end of a run.
 * @param record with its newest attempt as of `now`
 * @param timeline all of its events until `now`
 * @param newest the newest runs of its team, for an expected end
 */
export function runFigures(
  record: RunRecord,
  timeline: readonly TimelineEvent[],
  newest: readonly RunRecord[],
  now: EpochMs,
): RunFigures {
  const booked = ledger(timeline, now);
  const interruptions = interruptionsIn(timeline);
  const fleet = fleetOf(record, newest, now);
  const { progressPercent, etaAt, etaInterval80 } = outlook(record, { ledger: booked, interruptions, fleet, now });
  return {
    goodput: booked.goodput,
    progressPercent: progressPercent === null ? null : Math.round(progressPercent * 10) / 10,
    etaAt: isoOf(etaAt ?? undefined),
    etaInterval80: etaInterval80 && [isoOf(etaInterval80[0]) ?? '', isoOf(etaInterval80[1]) ?? ''],
    interruptions,
  };
}

/** Whether a run may have an expected end, so that `runFigures` needs the newest runs of its team. */
export const mayHaveEnd = (run: RunRecord): boolean =>
  !isOver(run) && run.policy.totalSteps !== undefined && run.attempt !== undefined;

/** How often the team's other runs on the same instance types were interrupted. */
function fleetOf(own: RunRecord, newest: readonly RunRecord[], now: EpochMs): FleetRun[] {
  if (!mayHaveEnd(own)) return [];
  const others = newest.filter((other) => other.runId !== own.runId);
  return others.flatMap((other) => (isAlike(own, other) ? (fleetRun(other, now) ?? []) : []));
}

/** How often training was interrupted: by another attempt, by an interruption of the job's instances, or by an in-place restart. */
const interruptionsIn = (timeline: readonly TimelineEvent[]): number =>
  timeline.filter(
    ({ what, evidence }) =>
      what === 'attempt-ended' ||
      what === 'ranks-restarted' ||
      (what === 'job-status' && evidence.secondaryStatus === 'Interrupted'),
  ).length;
