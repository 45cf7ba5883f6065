import { type Issue, issue } from '../../config/issue';
import { requestedGroupsOf } from '../../config/resolve-run';
import type { RunSpec } from '../../config/run-spec';
import type { RunPlan } from '../run/plan-run';
import { type Offer, offersBy, type Question } from './offers';

/** Latest date: training plans are sold up to eight weeks ahead and last at most half a year. */
export const MAX_DAYS_AHEAD = 366;

/** Criteria for the search for training plans. */
export interface PlanNeeds {
  instanceType: string;
  instances: number;
  /** Hours that the run takes with 90 % probability. */
  hours: number;
}

/** The criteria of a run for a training plan; issues when the file does not state how long to train. */
export function planNeeds(run: RunSpec, plan: RunPlan): PlanNeeds | Issue[] {
  const { hours } = plan.interval80;
  if (plan.hours === null || !hours)
    return [
      issue('plan/length', 'error', 'training', {
        must: 'must say how long to train, to be planned by a date',
        fix: 'add training.steps or training.totalTokens',
      }),
    ];
  const groups = requestedGroupsOf(run.compute);
  const instances = groups.reduce((sum, group) => sum + group.instanceCount, 0);
  return { instanceType: groups[0]?.instanceType ?? '', instances, hours: hours[1] * 1.1 };
}

/** Whether a single training plan can hold all instances of the run. */
export const isOneType = (run: RunSpec): boolean => requestedGroupsOf(run.compute).length === 1;

/** All ways to finish a run by a date. `planNeeds` gives the criteria for the training plans. */
export function runOffers(
  plan: RunPlan,
  needs: PlanNeeds,
  { now, by, history, plans }: Pick<Question, 'now' | 'by' | 'history' | 'plans'>,
): Offer[] {
  const { hours, checkpoint, failureSeconds, usd, interval80 } = plan;
  return offersBy({
    work: {
      ...{ checkpoint, failureSeconds, instances: needs.instances },
      ...{ hours: hours ?? 0, hours80: interval80.hours ?? [0, 0] },
    },
    now,
    by,
    usdPerHour: { onDemand: usd.perHour, spot: usd.spot.perHour },
    history,
    plans,
  });
}
