import { REGIONS } from '../../catalog/regions';
import type { EnvironmentSpec } from '../../config/environment-file';
import { when } from '../../config/rule';
import { type EnvironmentFinding, type EnvironmentRule, environmentRule } from './environment-rule';

/** A resource may have 50 tags, some of which are needed for Slipway's tags, those of a run and those that CloudFormation adds. */
const MAX_TAGS = 35;

function foreignArns({ iam, account, region }: EnvironmentSpec): EnvironmentFinding[] {
  const partition = REGIONS[region]?.partition;
  const arns = { permissionsBoundary: iam.permissionsBoundary, oidcProvider: iam.oidcProvider };
  return Object.entries(arns).flatMap(([option, arn]) => {
    if (!arn?.startsWith('arn:')) return [];
    const [, ownPartition, , , owner] = arn.split(':');
    return [
      ...when(partition !== undefined && ownPartition !== partition, `iam.${option}`, {
        must: `must be in partition ${partition} of ${region}`,
        fix: `write arn:${partition}:iam::...`,
      }),
      ...when(account !== undefined && owner !== account && owner !== 'aws', `iam.${option}`, {
        must: `must be in account ${account}`,
        fix:
          option === 'permissionsBoundary' ? 'write only the name of the policy' : 'use the provider in that account',
      }),
    ];
  });
}

function oidc({ iam: { oidcProvider, oidcSubjects } }: EnvironmentSpec): EnvironmentFinding[] {
  return [
    ...when(oidcProvider !== undefined && oidcSubjects === undefined, 'iam.oidcSubjects', {
      must: 'must be set with oidcProvider',
      fix: 'write oidcSubjects: ["repo:<owner>/<repository>:ref:refs/heads/main"]',
    }),
    ...when(oidcProvider === undefined && oidcSubjects !== undefined, 'iam.oidcSubjects', {
      must: 'must be used with oidcProvider',
      fix: 'add oidcProvider, or remove it',
      isIgnored: true,
    }),
  ];
}

/** Rules for company-wide settings of roles, tags and secrets. */
export const COMPANY_RULES: readonly EnvironmentRule[] = [
  environmentRule('environment/roles', 'error', ['iam'], (spec) => [...foreignArns(spec), ...oidc(spec)]),
  environmentRule('environment/tags', 'error', ['tags'], ({ tags: given }) => {
    const keys = Object.keys(given);
    const lower = keys.map((key) => key.toLowerCase());
    return [
      ...when(keys.length > MAX_TAGS, 'tags', {
        must: `must be at most ${MAX_TAGS}`,
        got: keys.length,
        fix: 'remove some: a resource can have 50, and runs add their own',
      }),
      ...keys.flatMap((key, i) => [
        ...when(/^(aws|slipway):/i.test(key), `tags.${key}`, {
          must: 'must not start with aws: or slipway:',
          got: key,
          fix: 'rename it',
        }),
        ...when(lower.indexOf(key.toLowerCase()) !== i, `tags.${key}`, {
          must: `must differ from ${keys[lower.indexOf(key.toLowerCase())]} in more than case`,
          got: key,
          fix: 'keep one of them',
        }),
      ]),
    ];
  }),
  environmentRule(
    'environment/accounts',
    'error',
    ['account', 'accounts', 'runs'],
    ({ account, runs, accounts: given = {} }) => {
      const ids = Object.values(given);
      return [
        ...when(account !== undefined && ids.length > 0, 'accounts', {
          must: 'must not be given together with account',
          got: Object.keys(given),
          fix: 'keep one of the two',
        }),
        ...Object.entries(given).flatMap(([stage, id], i) =>
          when(ids.indexOf(id) !== i, `accounts.${stage}`, {
            must: 'must be a separate account: the name of an environment is unique in an account and region',
            fix: 'use another account, or an environment file with another name',
          }),
        ),
        ...runs.flatMap(({ submit }, i) =>
          when(submit === 'on-change' && ids.length > 1, `runs[${i}].submit`, {
            must: 'must be manual with several accounts: each of them would train the run',
            fix: 'launch it from the command line',
          }),
        ),
      ];
    },
  ),
  environmentRule(
    'environment/secrets',
    'error',
    ['secrets', 'network'],
    ({ secrets: { allowedPrefix }, network: { mode, endpoints = [] } }) =>
      when(
        allowedPrefix !== undefined &&
          mode === 'vpc-locked' &&
          !endpoints.includes('secretsmanager') &&
          !endpoints.includes('ssm'),
        'network.endpoints',
        {
          must: 'must contain secretsmanager or ssm, with secrets.allowedPrefix and mode vpc-locked',
          got: endpoints,
          fix: 'write endpoints: [secretsmanager], or [ssm] for parameters; each costs about 7 USD per month and zone',
        },
      ),
  ),
];
