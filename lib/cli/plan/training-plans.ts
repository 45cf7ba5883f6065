import {
  paginateListTrainingPlans,
  SageMakerClient,
  SearchTrainingPlanOfferingsCommand,
  type TrainingPlanOffering,
  type TrainingPlanSummary,
} from '@aws-sdk/client-sagemaker';
import type { ReservedPlan } from '../../core/planner/deadline/offers';
import { calling } from '../aws-errors';

/** Search criteria. */
export interface PlanQuestion {
  region: string;
  instanceType: string;
  instances: number;
  now: number;
  by: number;
  /** Hours that the run takes with 90 % probability. */
  hours: number;
}

/**
 * Numbers of instances in which plans are sold (https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html).
 */
const SIZES = [1, 2, 4, 8, 16, 32, 64];
/** Number of durations to search for: the service matches a duration exactly, in days. */
const DAYS_TRIED = 3;
const MAX_DAYS = 182;

/** Training plans on offer that end by the date, and owned ones that have not ended. Buys nothing. */
export async function readTrainingPlans(question: PlanQuestion): Promise<ReservedPlan[]> {
  const client = new SageMakerClient({ region: question.region });
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
  const found: TrainingPlanSummary[] = [];
  await calling('listing training plans', async () => {
    for await (const page of paginateListTrainingPlans({ client }, {}))
      found.push(...(page.TrainingPlanSummaries ?? []));
  });
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
