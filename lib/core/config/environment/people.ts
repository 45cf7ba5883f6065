import { z } from 'zod';
import { field, flag, formed, option } from '../formats/field';
import { trainingPlanArn } from '../run/formats';
import { email, keyArn, principal, unique } from './formats';

/** A prefix of the data bucket; `*` and `?` would be wildcards in a policy. */
const dataPrefix = formed(
  /^[\w!.()'-][\w!.()'/ -]*\/$/,
  'must be a prefix of the data bucket that ends with /, such as tokens/',
);
const mlflowArn = formed(
  /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:\d{12}:mlflow-(tracking-server|app)\/[\w-]+$/,
  'must be the ARN of an MLflow tracking server or app',
);
/** Name of a team: it is used in names of roles, aliases and parameters. */
export const teamName = formed(
  /^[a-z][a-z0-9]{0,11}$/,
  'must be 1-12 lower-case letters or digits, the first a letter',
);

/** A channel of a workspace that was authorised for the account in the console of Amazon Q Developer in chat applications. */
const slackChannel = z.strictObject({
  workspaceId: field(
    formed(/^[0-9A-Z]{1,255}$/, 'must be the id of a Slack workspace, such as T0123ABCD'),
    'ID of the Slack workspace.',
    { examples: ['T0123ABCD'] },
  ),
  channelId: field(
    formed(/^[A-Za-z0-9]{1,128}$/, 'must be the id of a Slack channel, such as C0123ABCD'),
    'ID of the Slack channel.',
    { examples: ['C0123ABCD'] },
  ),
});

/** Recipients of notices about an environment or a team. */
const notifications = z.strictObject({
  emails: option(unique(z.array(email)), 'Email addresses that receive notifications.', {
    default: [],
    examples: [['ml-platform@example.com']],
  }),
  slackChannel: option(
    slackChannel,
    'Slack channel that receives notifications, in a workspace that the account has authorized in Amazon Q Developer in chat applications. An account can use a channel once: each region and each team needs its own. Default: none.',
    { examples: [{ workspaceId: 'T0123ABCD', channelId: 'C0123ABCD' }] },
  ),
});

/** Section `notifications` of the environment. */
export const notificationsOfAll = notifications.extend({
  docsUrl: option(
    formed(
      /^https:\/\/[\w.-]+(:\d+)?(\/[\w./-]*)?$/,
      'must be an https address without query, such as https://docs.example.com/slipway',
    ).max(500),
    'Address of a copy of this documentation (`npm run docs` builds it), to which notices link. Default: notices contain what the runbook says to do.',
    { examples: ['https://docs.example.com/slipway'] },
  ),
});

const PERMISSION_SETS =
  'The roles of a permission set of IAM Identity Center, whose names end with a suffix that may change, are written with `*`: `arn:aws:iam::<account>:role/aws-reserved/sso.amazonaws.com/*AWSReservedSSO_<permission set>_*`.';
const principals = (description: string) =>
  option(unique(z.array(principal)), `${description} ${PERMISSION_SETS}`, {
    default: [],
    examples: [['arn:aws:iam::111122223333:role/nlp']],
  });

/** One team of section `teams`. */
export const team = z.strictObject({
  principals: principals('IAM roles and users that may launch runs of the team.'),
  share: option(z.number().positive(), 'Share of the team in the queue, relative to the shares of other teams.', {
    default: 1,
    examples: [2],
  }),
  data: option(
    unique(z.array(dataPrefix)),
    'Prefixes of the data bucket that the team may write, in addition to `teams/<team>/`.',
    { default: [], examples: [['c4-tokens/']] },
  ),
  mlflow: option(unique(z.array(mlflowArn)), 'MLflow tracking servers and apps that runs of the team may use.', {
    default: [],
    examples: [['arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/shared']],
  }),
  trainingPlans: option(
    unique(z.array(trainingPlanArn)),
    'SageMaker training plans that were bought for the team: runs of other teams cannot use them. A plan that no team names is shared by all.',
    { default: [], examples: [['arn:aws:sagemaker:us-west-2:111122223333:training-plan/nlp']] },
  ),
  budgetUsdPerMonth: option(
    z.number().positive().max(1e12),
    'Maximum recorded spend of the runs of the team in one region in a calendar month (UTC), in USD: each region has this budget, unless it sets another one. When it is reached, new runs do not start and users cannot resume runs; started runs continue. A run whose price is not known is refused. AWS Budgets sends email to the addresses of `notifications` at 50, 80 and 100 percent. Default: no limit.',
    { examples: [50_000] },
  ),
  dashboards: flag(
    'Whether the team has a CloudWatch dashboard with its queue, instances, spend of the month and failed runs, and the GPUs of all jobs of the environment. The dashboard and five metrics cost about 4.50 USD per month.',
  ),
  kmsKey: option(
    z.union([z.enum(['own', 'shared']), keyArn], {
      error: 'must be own, shared, or the ARN of a KMS key (not of an alias)',
    }),
    'KMS key for everything that users, jobs and runs of the team write: `shared` is the key of the environment; `own` is a key for this team only, which the stack creates and retains when the team is removed; an ARN specifies an existing key of the account, such as a key that an earlier stack created. A key costs 1 USD per month. With its own key, jobs of the team must specify the key for each write and cannot use `checkpoints.mode: managed` or `observability.tensorBoard`.',
    { default: 'shared', examples: ['own'] },
  ),
  notifications: option(
    notifications,
    'Additional recipients of notifications about runs of the team. Default: none.',
    { examples: [{ emails: ['nlp@example.com'] }] },
  ),
});

export const access = z.strictObject({
  platformAdmins: principals('IAM roles and users that may use every team alias and all data.'),
  auditors: principals('IAM roles and users that may read settings, runs, logs and costs, but no data.'),
  ci: principals('IAM roles and users of a CI pipeline that may run the checks before a launch.'),
});
