import { issue } from '../../config/issue';
import { requestedGroupsOf } from '../../config/resolve-run';
import type { RunSpec } from '../../config/run-spec';
import type { RunPlan } from '../run/plan-run';
import {
  type CapacityHistory,
  type CapacityKind,
  type Course,
  coursesOf,
  NO_HISTORY,
  quantile,
  type Work,
} from './course';

/** A span of time, epoch milliseconds. */
export interface Block {
  from: number;
  to: number;
}

/** A training plan that is offered for sale, or that the account owns. */
export interface ReservedPlan {
  kind: 'training-plan-on-offer' | 'own-training-plan';
  /** Id of the offering, or ARN of the plan. */
  id: string;
  blocks: readonly Block[];
  instances: number;
  /** Price of the whole plan, USD; 0 for an owned plan. null = not priced in USD. */
  usd: number | null;
  note?: string;
}

/** Input of `plan --by`: the run, the date, and the known facts about capacity. */
export interface Question {
  work: Work;
  now: number;
  by: number;
  /** USD per hour of the whole job; null = not known. */
  usdPerHour: Record<'onDemand' | 'spot', number | null>;
  history: Partial<Record<'on-demand' | 'spot', CapacityHistory>>;
  plans: readonly ReservedPlan[];
}

/** An offer meets the date if this share of its courses does. */
const SURE = 0.9;
const HOUR_MS = 3_600_000;
/** AWS reclaims the instances of a plan this long before its end (AWS, reserve training plans). */
const LEAVE_MS = HOUR_MS / 2;

/** All ways to complete the run: those that meet the date first, and the cheapest of them first. */
export function offersBy(question: Question): Offer[] {
  const offers = [
    marketOffer(question, 'on-demand'),
    marketOffer(question, 'spot'),
    ...question.plans.map((plan) => planOffer(question, plan)),
  ];
  const rank = ({ makesDate, usd }: Offer) => (makesDate ? 0 : 1e12) + (usd ?? 1e11);
  return offers.sort((a, b) => rank(a) - rank(b));
}

/** One way to complete the run. */
export type Offer = ReturnType<typeof marketOffer | typeof planOffer>;

function marketOffer({ work, now, by, usdPerHour, history }: Question, kind: 'on-demand' | 'spot') {
  const seen = history[kind] ?? NO_HISTORY;
  const courses = coursesOf(work, kind, seen);
  const rate = kind === 'spot' ? usdPerHour.spot : usdPerHour.onDemand;
  const ends = sorted(courses.map((c) => now + (c.waitHours + c.runHours) * HOUR_MS));
  const bills = rate === null ? undefined : sorted(courses.map((c) => c.billedHours * rate));
  return {
    kind,
    id: undefined,
    ...times(sorted(courses.map((c) => now + c.waitHours * HOUR_MS)), ends),
    /** Expected cost including failures, restarts and saves; null = no price known. */
    usd: bills ? quantile(bills, 0.5) : null,
    usdInterval80: bills ? intervalOf(bills) : null,
    ...judged(ends, by, now, by - (quantile(ends, SURE) - now)),
    /** The source of the assumed waits and failures. */
    basis: basisOf(seen, kind),
    note: '',
  };
}

function planOffer({ work, now, by }: Question, plan: ReservedPlan) {
  const courses = coursesOf(work, 'reserved', NO_HISTORY);
  const begin = Math.max(now, plan.blocks[0]?.from ?? now);
  const starts = sorted(courses.map((c) => begin + c.waitHours * HOUR_MS));
  const isLarge = plan.instances >= work.instances;
  const ends = sorted(courses.map((c) => (isLarge ? endWithin(plan.blocks, begin, c) : Number.POSITIVE_INFINITY)));
  const longest = quantile(sorted(courses.map((c) => c.waitHours + c.runHours)), SURE) * HOUR_MS;
  const latest = latestWithin(plan.blocks, by, longest);
  const small = isLarge ? [] : [`has ${plan.instances} instances free, the run needs ${work.instances}`];
  return {
    kind: plan.kind,
    id: plan.id,
    ...times(starts, ends),
    /** A training plan on offer is paid in full. */
    usd: plan.usd,
    usdInterval80: plan.usd === null ? null : intervalOf([plan.usd]),
    ...judged(ends, by, now, isLarge ? latest : Number.NEGATIVE_INFINITY),
    basis: basisOf(NO_HISTORY, 'reserved'),
    note: [...small, ...(plan.note ? [plan.note] : [])].join('; '),
  };
}

/** When a course ends that can only train within these blocks; infinity when they are too short. Each gap costs an additional start. */
export function endWithin(blocks: readonly Block[], begin: number, { waitHours, runHours }: Course): number {
  let left = runHours * HOUR_MS;
  for (const { from, to } of blocks) {
    const at = Math.max(from, begin) + waitHours * HOUR_MS;
    const available = to - LEAVE_MS - at;
    if (available <= 0) continue;
    if (left <= available) return at + left;
    left -= available;
  }
  return Number.POSITIVE_INFINITY;
}

/** The latest moment inside the blocks from which `ms` still fit before `by`, all in one block. */
function latestWithin(blocks: readonly Block[], by: number, ms: number): number {
  const moments = blocks.flatMap(({ from, to }) => {
    const at = Math.min(by, to - LEAVE_MS) - ms;
    return at >= from ? [at] : [];
  });
  return Math.max(Number.NEGATIVE_INFINITY, ...moments);
}

const intervalOf = (values: readonly number[]): [number, number] => [quantile(values, 0.1), quantile(values, 0.9)];
const datesOf = ([low, high]: [number, number]): [string, string] => [iso(low), iso(high)];

/**
 * Median time of the first and of the last step over all simulated courses, and their 80 % interval; null where fewer than half end within the
 * reserved time. Times are ISO 8601.
 */
function times(starts: readonly number[], ends: readonly number[]) {
  const isSeen = Number.isFinite(quantile(ends, 0.5));
  return {
    startAt: iso(quantile(starts, 0.5)),
    startInterval80: datesOf(intervalOf(starts)),
    endAt: isSeen ? iso(quantile(ends, 0.5)) : null,
    endInterval80: isSeen ? datesOf(intervalOf(ends.filter(Number.isFinite))) : null,
  };
}

/**
 * Share of the simulated courses that are complete by the date, and the latest launch that is with 90 % probability; null when it has passed.
 */
function judged(ends: readonly number[], by: number, now: number, latest: number) {
  const chance = ends.filter((end) => end <= by).length / ends.length;
  return { chance, makesDate: chance >= SURE, latestStartAt: latest >= now ? iso(latest) : null };
}

function basisOf({ runs, waitsHours, interruptions }: CapacityHistory, kind: CapacityKind): string {
  if (kind === 'reserved') return 'reserved capacity starts in minutes; failures as published';
  if (runs === 0) return 'no own run on this capacity yet: waits and failures as published';
  return `${runs} own runs: ${waitsHours.length} waits, ${interruptions} interruptions`;
}

const sorted = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);
const iso = (at: number): string => new Date(Math.round(at / 60_000) * 60_000).toISOString();

/** Latest date: training plans are sold up to eight weeks ahead and last at most half a year. */
export const MAX_DAYS_AHEAD = 366;

/**
 * The criteria of a run for a training plan, with the hours that it takes with 90 % probability; issues when the file does not state how long
 * to train.
 */
export function planNeeds(run: RunSpec, plan: RunPlan) {
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
  { instances }: { instances: number },
  { now, by, history, plans }: Pick<Question, 'now' | 'by' | 'history' | 'plans'>,
): Offer[] {
  const { hours, checkpoint, failureSeconds, usd, interval80 } = plan;
  return offersBy({
    work: {
      checkpoint,
      failureSeconds,
      instances,
      hours: hours ?? 0,
      hours80: interval80.hours ?? [0, 0],
    },
    now,
    by,
    usdPerHour: { onDemand: usd.perHour, spot: usd.spot.perHour },
    history,
    plans,
  });
}
