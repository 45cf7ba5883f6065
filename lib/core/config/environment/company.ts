import { z } from 'zod';
import { field, flag, formed, option, written } from '../formats/field';
import { unique } from './formats';

// Company-wide settings of every stack: names, paths and boundaries of roles, tags, logs.

const policyArn = /^arn:aws[a-z-]*:iam::(\d{12}|aws):policy\/[\w+=,.@/-]{1,512}$/;
const policyName = /^[\w+=,.@-]{1,128}$/;

/** ARN of a managed policy that is given as an ARN, or as its name in the account. */
export const managedPolicyArn = (policy: string, place: { partition: string; account: string }): string =>
  policy.startsWith('arn:') ? policy : `arn:${place.partition}:iam::${place.account}:policy/${policy}`;

/** https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html */
export const iam = z.strictObject({
  permissionsBoundary: option(
    z
      .string()
      .refine((v) => policyArn.test(v) || policyName.test(v), 'must be the ARN or the name of a managed policy'),
    'Managed policy, by ARN or by its name in the account, that is the permissions boundary of every role in the stack. Default: none.',
    { examples: ['ml-boundary', 'arn:aws:iam::111122223333:policy/ml-boundary'] },
  ),
  rolePath: option(
    formed(/^\/([\w.,+@=-]+\/){0,8}$/, 'must be a path such as /ml/, that begins and ends with /').max(512),
    'Path of every role in the stack. A change replaces the roles.',
    { default: '/', examples: ['/ml/'] },
  ),
  rolePrefix: option(
    formed(/^[\w+=,.@-]{1,24}$/, 'must be 1-24 letters, digits and +=,.@_-'),
    'Name prefix of every role in the stack. A change replaces the roles. Default: none; only the roles of teams and users have stable names.',
    { examples: ['acme-'] },
  ),
  oidcProvider: option(
    formed(/^arn:aws[a-z-]*:iam::\d{12}:oidc-provider\/[\w./-]+$/, 'must be the ARN of an OIDC provider of IAM'),
    'OIDC provider of the CI system, whose jobs with a subject in `oidcSubjects` may assume the role of `access.ci`. Default: none.',
    { examples: ['arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com'] },
  ),
  oidcSubjects: option(
    unique(z.array(formed(/^[^*?][^?]*$/, 'must not begin with a wildcard')).min(1)),
    'Accepted subjects of tokens, with `oidcProvider`; `*` matches any text. Default: none.',
    { examples: [['repo:acme/training:ref:refs/heads/main']] },
  ),
});

/** https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html */
const tagText = (most: number) =>
  z
    .string()
    .max(most, `must be at most ${most} characters`)
    .regex(/^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u, 'must be letters, digits, spaces and _.:/=+-@');

/** Tags of every resource and job. */
export const tags = z.record(
  tagText(128).min(1, 'must have a character at least'),
  field(written.pipe(tagText(256)), 'Value of the tag, at most 256 characters.'),
);

/**
 * Retention periods that CloudWatch Logs accepts, days:
 * https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
 */
const RETENTION_DAYS = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
] as const;

export const logging = z.strictObject({
  kms: flag(
    'Whether the log groups of the stack are encrypted with the key of the stack (true) or with the default encryption of CloudWatch Logs (false).',
    true,
  ),
  retentionDays: option(z.literal(RETENTION_DAYS), 'Retention of the log groups of the stack, in days.', {
    default: 90,
    examples: [365],
  }),
});

export const secrets = z.strictObject({
  allowedPrefix: option(
    formed(/^([\w/+=.@-]|\{team\}){1,256}$/, 'must be 1-256 letters, digits and /_+=.@-, or {team}'),
    'Name prefix of the secrets and parameters that run files may use under `secrets`; {team} is replaced by the name of the team. Default: none; runs cannot use secrets.',
    { examples: ['slipway/{team}/'] },
  ),
});
