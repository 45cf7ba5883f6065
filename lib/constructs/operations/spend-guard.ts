import { createHash } from 'node:crypto';
import { Stack } from 'aws-cdk-lib';
import * as budgets from 'aws-cdk-lib/aws-budgets';
import { Construct } from 'constructs';

export interface SpendGuardProps {
  /** Name of the environment, whose tag selects the spend. */
  readonly environment: string;
  /** Budget of a calendar month, USD. */
  readonly monthlyUsd: number;
  /** Share of the budget, in per cent, at which people are told. @default [50, 80, 100] */
  readonly thresholdsPercent?: readonly number[];
  /** Who is told; a budget takes at most ten addresses for each threshold. */
  readonly emails: readonly string[];
}

/**
 * A monthly budget over what carries the environment's tag in this Region. The tag `slipway:environment` must be activated as
 * a cost allocation tag once in the payer account; figures come about a day late, so that it informs and stops nothing.
 */
export class SpendGuard extends Construct {
  constructor(scope: Construct, id: string, props: SpendGuardProps) {
    super(scope, id);
    const { region } = Stack.of(this);
    const thresholds = props.thresholdsPercent ?? [50, 80, 100];
    const subscribers = props.emails.map((address) => ({ address, subscriptionType: 'EMAIL' }));
    new budgets.CfnBudget(this, 'Resource', {
      budget: {
        budgetName: `slipway-${props.environment}-${region}-${tagOf([thresholds, props.emails])}`,
        budgetType: 'COST',
        timeUnit: 'MONTHLY',
        budgetLimit: { amount: props.monthlyUsd, unit: 'USD' },
        costFilters: { TagKeyValue: [`user:slipway:environment$${props.environment}`], Region: [region] },
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

/**
 * Other notifications make CloudFormation replace the budget, the new one before the old one goes: it needs another name.
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-budgets-budget.html
 */
const tagOf = (notifications: unknown): string =>
  createHash('sha256').update(JSON.stringify(notifications)).digest('hex').slice(0, 8);
