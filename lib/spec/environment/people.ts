import { z } from 'zod';
import { email, keyArn, principal, unique } from './formats';

/** A prefix of the data bucket; in a policy `*` and `?` would be wildcards. */
const dataPrefix = z
  .string()
  .regex(/^[\w!.()'-][\w!.()'/ -]*\/$/, 'must be a prefix of the data bucket that ends with /, such as tokens/');
const mlflowArn = z
  .string()
  .regex(
    /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:\d{12}:mlflow-(tracking-server|app)\/[\w-]+$/,
    'must be the ARN of an MLflow tracking server or app',
  );
/** Name of a team: it goes into names of roles, aliases and parameters. */
export const teamName = z
  .string()
  .regex(/^[a-z][a-z0-9]{0,11}$/, 'must be 1-12 lower-case letters or digits, the first a letter');

/** A channel of a workspace that the account has authorised in the console of Amazon Q Developer in chat applications. */
const slackChannel = z.strictObject({
  workspaceId: z
    .string()
    .regex(/^[0-9A-Z]{1,255}$/, 'must be the id of a Slack workspace, such as T0123ABCD')
    .meta({ description: 'Id of the Slack workspace.', examples: ['T0123ABCD'] }),
  channelId: z
    .string()
    .regex(/^[A-Za-z0-9]{1,128}$/, 'must be the id of a Slack channel, such as C0123ABCD')
    .meta({ description: 'Id of the Slack channel.', examples: ['C0123ABCD'] }),
});

/** Who is told of an environment or a team. */
export const notifications = z.strictObject({
  emails: unique(z.array(email))
    .optional()
    .meta({
      description: 'Addresses that are notified.',
      default: [],
      examples: [['ml-platform@example.com']],
    }),
  slackChannel: slackChannel.optional().meta({
    description:
      'Slack channel that is notified, in a workspace that the account has authorised in Amazon Q Developer in chat applications. Default: none.',
    examples: [{ workspaceId: 'T0123ABCD', channelId: 'C0123ABCD' }],
  }),
});

const PERMISSION_SETS =
  'The roles of a permission set of IAM Identity Center, whose names end with a suffix that may change, are written with `*`: `arn:aws:iam::<account>:role/aws-reserved/sso.amazonaws.com/*AWSReservedSSO_<permission set>_*`.';
const principals = (description: string) =>
  unique(z.array(principal))
    .optional()
    .meta({
      description: `${description} ${PERMISSION_SETS}`,
      default: [],
      examples: [['arn:aws:iam::111122223333:role/nlp']],
    });

/** One team of section `teams`. */
export const team = z.strictObject({
  principals: principals('IAM roles and users that may launch runs of the team.'),
  share: z
    .number()
    .positive()
    .optional()
    .meta({
      description: "The team's share of the queue, relative to the shares of the others.",
      default: 1,
      examples: [2],
    }),
  data: unique(z.array(dataPrefix))
    .optional()
    .meta({
      description: 'Prefixes of the data bucket that the team may write, beside its own `teams/<team>/`.',
      default: [],
      examples: [['c4-tokens/']],
    }),
  mlflow: unique(z.array(mlflowArn))
    .optional()
    .meta({
      description: "MLflow tracking servers and apps that the team's runs may log to.",
      default: [],
      examples: [['arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/shared']],
    }),
  budgetUsdPerMonth: z
    .number()
    .positive()
    .max(1e12)
    .optional()
    .meta({
      description:
        "What the team's runs may cost in a calendar month (UTC), in USD by the ledger of runs. Once it is spent, no run starts for the first time and none is resumed by a person; runs that have begun go on. Addresses of `notifications` get mail at 50, 80 and 100 percent of it from AWS Budgets. Default: no limit.",
      examples: [50_000],
    }),
  dashboards: z.boolean().optional().meta({
    description:
      'Whether the team has a dashboard in CloudWatch: its queue, instances, spend of the month and failed runs, and the GPUs of all jobs of the environment. Costs about 4.50 USD a month: the dashboard and five metrics.',
    default: false,
  }),
  kmsKey: z
    .union([z.enum(['own', 'shared']), keyArn])
    .optional()
    .meta({
      description:
        "Key of what the team's people, jobs and runs write: `shared` is that of the environment; `own` is one of the team's alone, which the stack makes and which stays when the team goes; an ARN names an existing key of the account, such as the one that an earlier stack made. Costs 1 USD a month. The team's jobs then may not write without naming the key: no `checkpoints.mode: managed` and no `observability.tensorBoard`.",
      default: 'shared',
      examples: ['own'],
    }),
  notifications: notifications.optional().meta({
    description: "Who is notified of the team's runs, beside those whom the environment names. Default: nobody.",
    examples: [{ emails: ['nlp@example.com'] }],
  }),
});

/** Section `access`. */
export const access = z.strictObject({
  platformAdmins: principals('IAM roles and users that may use every team alias and all data.'),
  auditors: principals('IAM roles and users that may read what happened, and no data.'),
  ci: principals('IAM roles and users of a pipeline that may run the checks before a launch.'),
});
