import { when } from '../../config/rule';
import type { EnvironmentRule } from './environment-rule';

const recipients: EnvironmentRule = {
  id: 'environment/budget',
  level: 'warning',
  what: 'A budget with thresholds has notification addresses.',
  why: 'A budget without addresses sends no notifications when a threshold is exceeded.',
  source: 'https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-create.html',
  reads: ['budget'],
  check: ({ budget }) =>
    when(budget?.thresholdsPercent !== undefined && (budget.emails ?? []).length === 0, {
      path: 'budget.thresholdsPercent',
      must: 'must be used with budget.emails',
      got: budget?.thresholdsPercent,
      fix: 'add emails, or remove it',
    }),
};

/** https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_NotificationWithSubscribers.html, 2026-11-26. */
const MAX_ADDRESSES = 10;

const subscribers: EnvironmentRule = {
  id: 'environment/budget-addresses',
  level: 'error',
  what: `A team with a budget has at most ${MAX_ADDRESSES} notification addresses.`,
  why: 'AWS Budgets rejects a notification with more subscribers, during the deployment.',
  source:
    'https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_NotificationWithSubscribers.html',
  reads: ['teams'],
  check: ({ teams }) =>
    Object.entries(teams).flatMap(([team, { budgetUsdPerMonth, notifications }]) =>
      when(budgetUsdPerMonth !== undefined && notifications.emails.length > MAX_ADDRESSES, {
        path: `teams.${team}.notifications.emails`,
        must: `must be at most ${MAX_ADDRESSES} addresses with budgetUsdPerMonth`,
        got: notifications.emails.length,
        fix: 'use the address of a mailing list',
      }),
    ),
};

/** Rules for budgets. */
export const BUDGET_RULES: readonly EnvironmentRule[] = [recipients, subscribers];
