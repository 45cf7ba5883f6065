import pc from 'picocolors';
import type { Descriptor } from '../../core/config/descriptor';
import { textTable } from '../../core/config/formats/text-table';
import type { RunSpec } from '../../core/config/run-spec';
import { isOneType, MAX_DAYS_AHEAD, planNeeds, runOffers } from '../../core/planner/deadline/by-date';
import type { Offer, Question } from '../../core/planner/deadline/offers';
import type { RunPlan } from '../../core/planner/run/plan-run';
import { begunOf, HISTORY, historyOf } from '../../report/read/capacity-history';
import { eachInTurn } from '../../shared/aws/pace';
import { attempt } from '../attempt';
import { Refusal, UsageError } from '../exit';
import { minute } from '../runs/progress-text';
import { readRuns, readStatus } from '../runs/read-status';
import { type PlanQuestion, readTrainingPlans } from './training-plans';

/** Output of `plan --by --json`. */
export interface DatePlan {
  /** ISO 8601. */
  by: string;
  offers: Offer[];
  /** Information that could not be read. */
  notes: string[];
}

const DAY_MS = 86_400_000;

/** `2026-12-01` means the end of that day, UTC. */
export function deadlineOf(text: string, now: number): number {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text);
  const at = Date.parse(text) + (isDay ? DAY_MS - 1000 : 0);
  if (at > now && at <= now + MAX_DAYS_AHEAD * DAY_MS) return at;
  throw new UsageError(
    `--by: must be a date of the next ${MAX_DAYS_AHEAD} days, such as 2026-12-01 (its end, UTC) or 2026-12-01T18:00Z, got ${text}; write one of them`,
  );
}

/**
 * All ways to complete the run by a date. Buys nothing.
 * @param descriptor whose own runs and training plans are used. @default - none
 */
export async function planByDate(
  run: RunSpec,
  plan: RunPlan,
  { now, by, region }: { now: number; by: number; region: string },
  descriptor?: Descriptor,
): Promise<DatePlan> {
  const needs = planNeeds(run, plan);
  if (Array.isArray(needs)) throw new Refusal(needs);
  const { notes, ...facts } = await readFacts(descriptor, { region, now, by, ...needs }, isOneType(run));
  return { by: new Date(by).toISOString(), offers: runOffers(plan, needs, { now, by, ...facts }), notes };
}

/** Facts about capacity from the account. If one may not be read, a note says so: on-demand and spot are planned without it. */
async function readFacts(
  descriptor: Descriptor | undefined,
  question: PlanQuestion,
  hasOneType: boolean,
): Promise<Pick<Question, 'history' | 'plans'> & Pick<DatePlan, 'notes'>> {
  if (!descriptor)
    return { history: {}, plans: [], notes: ['own runs and training plans: not read without --environment'] };
  const [history, plans] = await Promise.all([
    attempt(() => readHistory(descriptor, question.instanceType)),
    attempt(async () => (hasOneType ? readTrainingPlans(question) : [])),
  ]);
  const notes = Object.entries({ 'own runs': history, 'training plans': plans }).flatMap(([what, { why }]) =>
    why === undefined ? [] : [`${what}: not read: ${why}`],
  );
  return { history: history.value ?? {}, plans: plans.value ?? [], notes };
}

const NAMES: Record<Offer['kind'], string> = {
  'on-demand': 'on demand',
  spot: 'spot',
  'training-plan-on-offer': 'training plan on offer',
  'own-training-plan': 'own training plan',
};

/** `11-27 15:57` of an ISO 8601 time. */
const short = (iso: string): string => minute(iso).slice(5);

/** A table of the offers, followed by their basis. */
export function datePlanText({ by, offers, notes }: DatePlan): string {
  const rows = offers.map((offer) => [
    NAMES[offer.kind],
    short(offer.startAt),
    offer.endAt ? short(offer.endAt) : 'too short',
    offer.endInterval80 ? `${short(offer.endInterval80[0])} to ${short(offer.endInterval80[1])}` : '-',
    offer.usd === null ? '-' : `$${Math.round(offer.usd).toLocaleString('en-US')}`,
    `${Math.round(100 * offer.chance)} %`,
    offer.latestStartAt ? short(offer.latestStartAt) : 'too late',
  ]);
  const header = ['capacity', 'starts (UTC)', 'ends (UTC)', '80 % interval', 'USD', `by ${short(by)}`, 'start by'];
  const behind = offers.map(({ kind, id, basis, note }) =>
    [`${NAMES[kind]}: ${basis}`, note, id].filter((part) => part).join('; '),
  );
  return [
    textTable(header, rows),
    '',
    ...behind,
    ...notes.map((note) => pc.yellow(note)),
    'nothing was purchased',
  ].join('\n');
}

/** Waits and interruptions of the team's newest runs on this instance type, by kind of capacity. */
async function readHistory(descriptor: Descriptor, instanceType: string): Promise<ReturnType<typeof historyOf>> {
  const begun = begunOf(await readRuns(descriptor, { limit: HISTORY.runs }));
  const wanted = { timeline: true, configuration: true } as const;
  const statuses = await eachInTurn(begun, HISTORY.atOnce, ({ runId }) => readStatus(descriptor, runId, wanted));
  return historyOf(statuses, instanceType);
}
