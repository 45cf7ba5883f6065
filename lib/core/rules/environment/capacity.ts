import { findInstanceType, INSTANCE_TYPES, nearestInstanceTypes } from '../../catalog/instances/instances';
import { instanceQuota } from '../../catalog/quotas';
import { REGIONS } from '../../catalog/regions';
import { MAX_TEAMS_WITH_GROUPS } from '../../config/environment/network';
import { type EnvironmentSpec, resolveEnvironments } from '../../config/environment-file';
import { orList } from '../../config/issue';
import { when } from '../../config/rule';
import { isAllowedType, matchesPattern } from '../guardrails';
import { type EnvironmentRule, environmentRule } from './environment-rule';

const IMAGE_KINDS = ['environment', 'dlc', 'smp', 'huggingface', 'uri'];

/**
 * Teams with a key, five principals and data in 60 external locations: their template has 470 of 500 resources and 980,000 of 1,000,000
 * bytes. With budgets, dashboards or chat channels for all of them it has too many: synthesis measures it.
 */
const MAX_TEAMS = 30;

/** https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_NotificationWithSubscribers.html, 2026-11-26. */
const MAX_ADDRESSES = 10;

const isInside = (prefix: string, folder: string): boolean => prefix !== folder && prefix.startsWith(folder);

/**
 * Slack channels in one region. One configuration for a channel and account, in partition aws only:
 * https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1155, and the pattern of IamRoleArn in
 * https://docs.aws.amazon.com/chatbot/latest/APIReference/API_SlackChannelConfiguration.html, 2026-11-30.
 */
function slackChannels({ region, notifications, teams }: EnvironmentSpec) {
  const ofTeams = Object.entries(teams).map(
    ([team, own]) => [`teams.${team}.notifications`, own.notifications] as const,
  );
  return [['notifications', notifications] as const, ...ofTeams].flatMap(([at, { slackChannel: channel }]) =>
    channel ? [{ option: `${at}.slackChannel`, region, id: `${channel.workspaceId}/${channel.channelId}` }] : [],
  );
}

/** Rules for the capacity, the queue and the spend of an environment, and for its teams and their principals. */
export const ENVIRONMENT_CAPACITY_RULES: readonly EnvironmentRule[] = [
  environmentRule('environment/instance-type', 'error', ['quotas', 'prices'], ({ quotas, prices }) =>
    [
      ...quotas.require.map((row, i) => ({ path: `quotas.require[${i}].instanceType`, type: row.instanceType })),
      ...Object.keys(prices).map((type) => ({ path: `prices[${JSON.stringify(type)}]`, type })),
    ].flatMap(({ path, type }) =>
      when(!findInstanceType(type), path, {
        must: 'must be a SageMaker training instance type',
        got: type,
        fix: `use for example ${orList(nearestInstanceTypes(type))}`,
      }),
    ),
  ),
  environmentRule('environment/quota-code', 'warning', ['quotas'], ({ quotas }) =>
    quotas.require.flatMap(({ instanceType: type, usage }, i) => {
      const quota = instanceQuota(type, usage);
      return when(findInstanceType(type) !== undefined && !quota.code, `quotas.require[${i}].instanceType`, {
        must: `must have a known quota code; "${quota.name}" is looked up by its name at deploy`,
        fix: 'no action, unless the deployment reports that the region has no such quota',
      });
    }),
  ),
  environmentRule('environment/guardrails', 'error', ['guardrails'], ({ guardrails }) => {
    const { allowedImages = [], allowedInstanceTypes: patterns = [] } = guardrails;
    const unmatched = patterns.filter((pattern) => !INSTANCE_TYPES.some(({ name }) => matchesPattern(pattern, name)));
    return [
      ...allowedImages.flatMap((name, i) => {
        const isUnknown = !IMAGE_KINDS.includes(name) && !/^[a-z0-9][\w./:@-]*\.[\w./:@-]*$/.test(name);
        return when(isUnknown, `guardrails.allowedImages[${i}]`, {
          must: `must be ${orList(IMAGE_KINDS)} or a prefix of an image URI`,
          fix: 'use one of them',
        });
      }),
      ...unmatched.map((pattern) => ({
        path: `guardrails.allowedInstanceTypes[${patterns.indexOf(pattern)}]`,
        // A pattern for types that do not exist yet is harmless if other patterns match.
        level: unmatched.length === patterns.length ? ('error' as const) : ('warning' as const),
        must: 'must match an instance type; * and ? are the only wildcards',
        fix: `write for example ${orList(nearestInstanceTypes(pattern))}`,
      })),
    ];
  }),
  /** Combinations of values that the schema allows individually but that contradict each other. */
  environmentRule('environment/guardrail-limits', 'warning', ['guardrails', 'quotas'], ({ guardrails, quotas }) => {
    const { maxInstancesPerRun = 0, maxConcurrentInstances: most = Number.POSITIVE_INFINITY } = guardrails;
    const { allowedInstanceTypes: allowed } = guardrails;
    return [
      ...when(maxInstancesPerRun > most, 'guardrails.maxInstancesPerRun', {
        must: `must be at most guardrails.maxConcurrentInstances ${most}`,
        fix: 'reduce it, or increase the other',
      }),
      ...quotas.require.flatMap(({ instanceType: type, count }, i) => [
        ...when(count > most, `quotas.require[${i}].count`, {
          must: `must be at most guardrails.maxConcurrentInstances ${most}`,
          fix: 'reduce it, or increase the guardrail',
        }),
        ...when(
          findInstanceType(type) !== undefined && !isAllowedType(allowed, type),
          `quotas.require[${i}].instanceType`,
          {
            must: `must be allowed by guardrails.allowedInstanceTypes (${orList(allowed ?? [])})`,
            fix: 'remove it, or allow the type',
          },
        ),
      ]),
    ];
  }),
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
    const names = Object.keys(teams);
    // A permission can open the folder of another team as a whole only: what denies it to the others names no folder in it.
    const isPart = (team: string, prefix: string) =>
      prefix === 'teams/' || names.some((name) => name !== team && isInside(prefix, `teams/${name}/`));
    return [
      ...when(names.length > MAX_TEAMS, 'teams', {
        must: `must be at most ${MAX_TEAMS}`,
        got: names.length,
        fix: 'create a second environment for the others',
      }),
      ...Object.entries(teams).flatMap(([team, { data }]) =>
        data.flatMap((prefix, i) =>
          when(isPart(team, prefix), `teams.${team}.data[${i}]`, {
            must: 'must be the whole folder of a team, or be outside teams/',
            fix: 'share a prefix outside teams/, and name it in the data of both teams',
          }),
        ),
      ),
    ];
  }),
  environmentRule('environment/team-groups', 'warning', ['teams', 'network'], ({ teams, network: { mode } }) => {
    const count = Object.keys(teams).length;
    return when(mode.startsWith('vpc-') && count > MAX_TEAMS_WITH_GROUPS && count <= MAX_TEAMS, 'teams', {
      must: `should be at most ${MAX_TEAMS_WITH_GROUPS}, so that no host of a job can be reached by code of another team`,
      got: count,
      fix: 'create a second environment for teams that must not trust the others',
    });
  }),
  environmentRule('environment/queue-backend', 'error', ['queue'], ({ queue }) =>
    when(queue.backend === 'batch', 'queue.backend', {
      must: 'must be slipway: AWS Batch would create jobs with a role without guardrails',
      fix: 'remove it; docs/decisions/0008-aws-batch.md has the reasons and requirements',
    }),
  ),
  environmentRule('environment/budget', 'warning', ['budget'], ({ budget }) =>
    when(budget?.thresholdsPercent !== undefined && (budget.emails ?? []).length === 0, 'budget.thresholdsPercent', {
      must: 'must be used with budget.emails',
      fix: 'add emails, or remove it',
    }),
  ),
  environmentRule('environment/budget-addresses', 'error', ['teams'], ({ teams }) =>
    Object.entries(teams).flatMap(([team, { budgetUsdPerMonth, notifications }]) => {
      const isTooMany = budgetUsdPerMonth !== undefined && notifications.emails.length > MAX_ADDRESSES;
      return when(isTooMany, `teams.${team}.notifications.emails`, {
        must: `must be at most ${MAX_ADDRESSES} addresses with budgetUsdPerMonth`,
        got: notifications.emails.length,
        fix: 'use the address of a mailing list',
      });
    }),
  ),
  environmentRule('environment/slack-channel', 'error', ['regions', 'notifications', 'teams'], (spec, file) => {
    const { partition } = REGIONS[spec.region] ?? {};
    const all = resolveEnvironments(file).flatMap(slackChannels);
    return slackChannels(spec).flatMap(({ option, region, id }) => {
      const first = all.find((other) => other.id === id);
      const isTaken = first !== undefined && (first.option !== option || first.region !== region);
      return [
        ...when(isTaken, `${option}.channelId`, {
          must: `must not be the channel of ${first?.option} in ${first?.region}: an account can use a Slack channel once`,
          fix: 'use one channel for each region, under regions.<region>, and one for each team',
        }),
        ...when(partition !== undefined && partition !== 'aws', `${option}.channelId`, {
          must: `must not be set in partition ${partition}, which has no Amazon Q Developer in chat applications`,
          fix: 'remove slackChannel, and use emails',
        }),
      ];
    });
  }),
];
