import { REGIONS } from '../../catalog/regions';
import { when } from '../../config/rule';
import { type EnvironmentRule, environmentRule } from './environment-rule';

/**
 * Teams with a key, five principals and data in 60 external locations: their template has 470 of 500 resources and 980,000 of 1,000,000
 * bytes. With budgets, dashboards or chat channels for all of them it has too many: synthesis measures it.
 */
const MAX_TEAMS = 30;

/** Rules for teams and their principals. */
export const PEOPLE_RULES: readonly EnvironmentRule[] = [
  environmentRule('environment/principals', 'error', ['teams', 'access'], ({ region, teams, access }) => {
    const own = REGIONS[region]?.partition;
    const named = [
      ...Object.entries(teams).map(([team, { principals: arns }]) => ({ at: `teams.${team}.principals`, arns })),
      ...Object.entries(access).map(([persona, arns]) => ({ at: `access.${persona}`, arns })),
    ];
    return named.flatMap(({ at, arns }) =>
      arns.flatMap((arn, i) =>
        when(own !== undefined && arn.split(':')[1] !== own, `${at}[${i}]`, {
          must: `must be a principal in partition ${own} of ${region}`,
          fix: `write arn:${own}:iam::...`,
        }),
      ),
    );
  }),
  environmentRule('environment/teams', 'error', ['teams'], ({ teams }) => {
    const count = Object.keys(teams).length;
    return when(count > MAX_TEAMS, 'teams', {
      must: `must be at most ${MAX_TEAMS}`,
      got: count,
      fix: 'create a second environment for the others',
    });
  }),
];

/** https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_NotificationWithSubscribers.html, 2026-11-26. */
const MAX_ADDRESSES = 10;

/** Rules for budgets. */
export const BUDGET_RULES: readonly EnvironmentRule[] = [
  environmentRule('environment/budget', 'warning', ['budget'], ({ budget }) =>
    when(budget?.thresholdsPercent !== undefined && (budget.emails ?? []).length === 0, 'budget.thresholdsPercent', {
      must: 'must be used with budget.emails',
      fix: 'add emails, or remove it',
    }),
  ),
  environmentRule('environment/budget-addresses', 'error', ['teams'], ({ teams }) =>
    Object.entries(teams).flatMap(([team, { budgetUsdPerMonth, notifications }]) =>
      when(
        budgetUsdPerMonth !== undefined && notifications.emails.length > MAX_ADDRESSES,
        `teams.${team}.notifications.emails`,
        {
          must: `must be at most ${MAX_ADDRESSES} addresses with budgetUsdPerMonth`,
          got: notifications.emails.length,
          fix: 'use the address of a mailing list',
        },
      ),
    ),
  ),
];
