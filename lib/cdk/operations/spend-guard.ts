import { createHash } from 'node:crypto';
import { Stack } from 'aws-cdk-lib';
import * as budgets from 'aws-cdk-lib/aws-budgets';
import { Construct } from 'constructs';
import type { EnvironmentSpec } from '../../core/config/environment-file';

export interface SpendGuardProps {
  /** Name of the environment, whose tag selects the spend. */
  readonly environment: string;
  /** Includes only costs with the tag of this team. @default - of the whole environment */
  readonly team?: string;
  /** Budget of a calendar month, USD. */
  readonly monthlyUsd: number;
  /** Percentages of the budget at which notifications are sent. @default [50, 80, 100] */
  readonly thresholdsPercent?: readonly number[];
  /** Email addresses that are notified; a budget accepts at most ten for each threshold. */
  readonly emails: readonly string[];
}

/**
 * A monthly budget for costs with the environment's tag, or also the team's, in this Region. The tags `slipway:environment` and
 * `slipway:team` must be activated once as cost allocation tags in the payer account; figures are about a day late, so the budget informs
 * and stops nothing. New runs of a team are stopped by the control plane, based on its ledger.
 */
export class SpendGuard extends Construct {
  constructor(scope: Construct, id: string, props: SpendGuardProps) {
    super(scope, id);
    const { region } = Stack.of(this);
    const thresholds = props.thresholdsPercent ?? [50, 80, 100];
    const subscribers = props.emails.map((address) => ({ address, subscriptionType: 'EMAIL' }));
    new budgets.CfnBudget(this, 'Resource', {
      budget: {
        budgetName: `slipway-${props.environment}-${region}-${props.team ? `${props.team}-` : ''}${tagOf([thresholds, props.emails])}`,
        budgetType: 'COST',
        timeUnit: 'MONTHLY',
        budgetLimit: { amount: props.monthlyUsd, unit: 'USD' },
        ...scopeOf(props, region),
      },
      notificationsWithSubscribers:
        subscribers.length === 0
          ? undefined
          : thresholds.map((threshold) => ({
              notification: {
                notificationType: 'ACTUAL',
                comparisonOperator: 'GREATER_THAN',
                threshold,
                thresholdType: 'PERCENTAGE',
              },
              subscribers,
            })),
    });
  }
}

/** The budgets in an environment file: of the environment, and of its teams. */
export function spendGuards(scope: Construct, { name: environment, budget, teams }: EnvironmentSpec): void {
  if (budget) {
    const { monthlyUsd, thresholdsPercent, emails } = budget;
    new SpendGuard(scope, 'Spend', { environment, monthlyUsd, thresholdsPercent, emails: emails ?? [] });
  }
  for (const [team, { budgetUsdPerMonth: monthlyUsd, notifications }] of Object.entries(teams))
    if (monthlyUsd)
      new SpendGuard(scope, `Spend-${team}`, { environment, team, monthlyUsd, emails: notifications.emails });
}

/**
 * The values of one filter are alternatives: a budget of a team needs an expression in which both tags must match.
 * https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_Expression.html, 2026-11-22.
 */
function scopeOf({ environment, team }: SpendGuardProps, region: string) {
  if (!team) return { costFilters: { TagKeyValue: [`user:slipway:environment$${environment}`], Region: [region] } };
  const tag = (key: string, value: string) => ({ tags: { key, values: [value], matchOptions: ['EQUALS'] } });
  return {
    filterExpression: {
      and: [
        tag('slipway:environment', environment),
        tag('slipway:team', team),
        { dimensions: { key: 'REGION', values: [region], matchOptions: ['EQUALS'] } },
      ],
    },
    metrics: ['UnblendedCost'],
  };
}

/**
 * A change of the notifications makes CloudFormation replace the budget and create the new one before it deletes the old one, so the new
 * one needs another name. https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-budgets-budget.html
 */
const tagOf = (notifications: unknown): string =>
  createHash('sha256').update(JSON.stringify(notifications)).digest('hex').slice(0, 8);
