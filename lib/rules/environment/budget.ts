import { when } from '../../spec/rule';
import type { EnvironmentRule } from './environment-rule';

const told: EnvironmentRule = {
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

/** Rules for budgets. */
export const BUDGET_RULES: readonly EnvironmentRule[] = [told];
