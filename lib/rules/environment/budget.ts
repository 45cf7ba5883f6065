import { when } from '../../spec/rule';
import type { EnvironmentRule } from './environment-rule';

const told: EnvironmentRule = {
  id: 'environment/budget',
  level: 'warning',
  what: 'The thresholds of a budget have somebody to tell.',
  why: 'A budget without addresses makes no notifications: nobody hears of a threshold.',
  source: 'https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-create.html',
  reads: ['budget'],
  check: ({ budget }) =>
    when(budget?.thresholdsPercent !== undefined && (budget.emails ?? []).length === 0, {
      path: 'budget.thresholdsPercent',
      must: 'must go with budget.emails',
      got: budget?.thresholdsPercent,
      fix: 'add emails, or remove it',
    }),
};

/** Rules over budgets. */
export const BUDGET_RULES: readonly EnvironmentRule[] = [told];
