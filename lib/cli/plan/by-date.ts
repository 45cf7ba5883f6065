import {
  paginateListTrainingPlans,
  SageMakerClient,
  SearchTrainingPlanOfferingsCommand,
  type TrainingPlanOffering,
  type TrainingPlanSummary,
} from '@aws-sdk/client-sagemaker';
import pc from 'picocolors';
import { memoryIssues } from '../../core/admission';
import type { Descriptor } from '../../core/config/descriptor';
import { textTable } from '../../core/config/formats/plain-text';
import type { RunSpec } from '../../core/config/run-spec';
import type { Printed } from '../../core/contracts/answers';
import {
  isOneType,
  MAX_DAYS_AHEAD,
  type Offer,
  planNeeds,
  type Question,
  type ReservedPlan,
  runOffers,
} from '../../core/planner/deadline/by-date';
import type { RunPlan } from '../../core/planner/run/plan-run';
import { begunOf, HISTORY, historyOf } from '../../report/read/capacity-history';
import { eachInTurn } from '../../shared/aws/pace';
import { itemsOf } from '../../shared/aws/pages';
import { awsClient } from '../aws-client';
import { calling } from '../aws-errors';
import { EXIT, Refusal, UsageError } from '../exit';
import { isoTime } from '../given-time';
import { attempt, readRuns, readStatus } from '../runs/control-client';
import { minute } from '../runs/run-text';
import { json, type Terminal } from '../terminal';

/** Search criteria. */
interface PlanQuestion extends Exclude<ReturnType<typeof planNeeds>, unknown[]> {
  region: string;
  now: number;
  by: number;
}

/**
 * Numbers of instances in which plans are sold (https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html).
 */
const SIZES = [1, 2, 4, 8, 16, 32, 64];
/** Number of durations to search for: the service matches a duration exactly, in days. */
const DAYS_TRIED = 3;
const MAX_DAYS = 182;

/** Training plans on offer that end by the date, and owned ones that have not ended. Buys nothing. */
async function readTrainingPlans(question: PlanQuestion): Promise<ReservedPlan[]> {
  const client = awsClient(SageMakerClient, { region: question.region });
  const [offered, own] = await Promise.all([searchOffers(client, question), listOwn(client, question)]);
  return [...own, ...offered];
}

async function searchOffers(client: SageMakerClient, question: PlanQuestion): Promise<ReservedPlan[]> {
  const size = SIZES.find((count) => count >= question.instances);
  const first = Math.max(1, Math.ceil(question.hours / 24));
  if (size === undefined || first > MAX_DAYS) return [];
  const durations = Array.from({ length: DAYS_TRIED }, (_, i) => 24 * (first + i));
  const found = await Promise.all(
    durations.map((DurationHours) =>
      calling('searching for training plans', () =>
        client.send(
          new SearchTrainingPlanOfferingsCommand({
            InstanceType: question.instanceType as never,
            InstanceCount: size,
            DurationHours,
            StartTimeAfter: new Date(question.now),
            EndTimeBefore: new Date(question.by),
            TargetResources: ['training-job'],
          }),
        ),
      ),
    ),
  );
  const offers = found.flatMap(({ TrainingPlanOfferings = [] }) => TrainingPlanOfferings);
  return [...new Map(offers.map((offer) => [offer.TrainingPlanOfferingId, offer])).values()].map(offeredPlan);
}

function offeredPlan(offer: TrainingPlanOffering): ReservedPlan {
  const parts = offer.ReservedCapacityOfferings ?? [];
  const isDollars = (offer.CurrencyCode ?? 'USD') === 'USD' && offer.UpfrontFee !== undefined;
  return {
    kind: 'training-plan-on-offer',
    id: offer.TrainingPlanOfferingId ?? '',
    blocks: blocksOf(parts),
    instances: Math.min(...parts.map(({ InstanceCount = 0 }) => InstanceCount)),
    usd: isDollars ? Number(offer.UpfrontFee) : null,
    note: isDollars ? 'paid upfront' : `${offer.UpfrontFee} ${offer.CurrencyCode}`,
  };
}

async function listOwn(client: SageMakerClient, question: PlanQuestion): Promise<ReservedPlan[]> {
  const found = await calling('listing training plans', () =>
    itemsOf(paginateListTrainingPlans({ client }, {}), (page) => page.TrainingPlanSummaries),
  );
  return found
    .filter(
      (plan) =>
        ['Active', 'Scheduled'].includes(plan.Status ?? '') &&
        plan.TargetResources?.includes('training-job') &&
        plan.ReservedCapacitySummaries?.some(({ InstanceType }) => InstanceType === question.instanceType),
    )
    .map(ownPlan);
}

/** Before a plan starts, all of its instances count as available. */
function ownPlan(plan: TrainingPlanSummary): ReservedPlan {
  const parts = plan.ReservedCapacitySummaries?.filter(({ StartTime }) => StartTime) ?? [];
  return {
    kind: 'own-training-plan',
    id: plan.TrainingPlanArn ?? '',
    blocks: blocksOf(parts.length > 0 ? parts : [plan]),
    instances: (plan.Status === 'Scheduled' ? plan.TotalInstanceCount : plan.AvailableInstanceCount) ?? 0,
    usd: 0,
    note: `${plan.TrainingPlanName}, already paid`,
  };
}

const blocksOf = (parts: readonly { StartTime?: Date; EndTime?: Date }[]) =>
  parts
    .map(({ StartTime, EndTime }) => ({ from: StartTime?.getTime() ?? 0, to: EndTime?.getTime() ?? 0 }))
    .sort((a, b) => a.from - b.from);

const DAY_MS = 86_400_000;

/** `2026-12-01` means the end of that day, UTC. */
export function deadlineOf(text: string, now: number): number {
  const at = isoTime(text) + (text.includes('T') ? 0 : DAY_MS - 1000);
  if (at > now && at <= now + MAX_DAYS_AHEAD * DAY_MS) return at;
  throw new UsageError(
    `--by: must be a date of the next ${MAX_DAYS_AHEAD} days, such as 2026-12-01 (its end, UTC) or 2026-12-01T18:00Z, got ${text}; write one of them`,
  );
}

/**
 * Prints all ways to complete the run by a date. Buys nothing.
 * @param facts the deadline and region, and whose own runs and training plans are used. @default descriptor - none
 */
export async function planByDate(
  run: RunSpec,
  plan: RunPlan,
  { by, region, descriptor, asJson }: { by: number; region: string; descriptor?: Descriptor; asJson?: boolean },
  terminal: Terminal,
): Promise<number> {
  if (plan.fits === 'oom') throw new Refusal(memoryIssues(run, region));
  const needs = planNeeds(run, plan);
  if (Array.isArray(needs)) throw new Refusal(needs);
  const now = Date.now();
  const { notes, ...facts } = await readFacts(descriptor, { region, now, by, ...needs }, isOneType(run));
  const found = { by: new Date(by).toISOString(), offers: runOffers(plan, needs, { now, by, ...facts }), notes };
  terminal.out(asJson ? json(found) : datePlanText(found));
  return EXIT.done;
}

/** Facts about capacity from the account. If one may not be read, a note says so: on-demand and spot are planned without it. */
async function readFacts(
  descriptor: Descriptor | undefined,
  question: PlanQuestion,
  hasOneType: boolean,
): Promise<Pick<Question, 'history' | 'plans'> & { notes: string[] }> {
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
function datePlanText({ by, offers, notes }: Printed<'offers'>): string {
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
