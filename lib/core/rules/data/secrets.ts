import { secretPrefix, secretReference } from '../../config/formats/secret-reference';
import type { RunSpec } from '../../config/run-spec';
import { type Finding, type Rule, type RuleContext, when } from '../rule';
import { isReserved } from './reserved-variables';
import { SECRET_IN_CLEAR } from './secrets-in-clear';

function names({ secrets = {}, environmentVariables }: RunSpec): Finding[] {
  return Object.keys(secrets).flatMap((name) => [
    ...when(name in environmentVariables, {
      path: `secrets.${name}`,
      must: 'must not also be in environmentVariables',
      got: name,
      fix: 'keep one of them; neither may contain the value of a secret',
    }),
    ...when(isReserved(name), {
      path: `secrets.${name}`,
      must: 'must not be a reserved variable of the container',
      got: name,
      fix: 'use another name, such as HF_TOKEN',
    }),
  ]);
}

function readable({ secrets, distribution, network }: RunSpec): Finding[] {
  if (!secrets) return [];
  return [
    ...when(distribution.contract !== 'entrypoint', {
      path: 'secrets',
      must: `must be used with contract entrypoint: ${distribution.contract === 'toolkit' ? 'the toolkit reads no secrets' : 'only the driver reads them'}`,
      got: `contract ${distribution.contract}`,
      fix: `${distribution.contract === 'toolkit' ? 'set distribution.contract: entrypoint, or ' : ''}read the secret in the ${distribution.contract === 'toolkit' ? 'script' : 'program of the image'}`,
    }),
    ...when(network.isolation, {
      path: 'secrets',
      must: 'must not be used with network.isolation: an isolated container cannot reach any service',
      got: 'isolation true',
      fix: 'remove one of them',
    }),
  ];
}

function allowed({ secrets = {} }: RunSpec, { descriptor }: RuleContext): Finding[] {
  if (!descriptor) return [];
  const { secretsPrefix, name: environment, region, account } = descriptor;
  return Object.entries(secrets).flatMap(([variable, text]) => {
    const path = `secrets.${variable}`;
    const reference = secretReference(text);
    if (secretsPrefix === undefined)
      return [
        {
          path,
          must: `must be allowed in environment ${environment}, which allows no secrets`,
          got: text,
          fix: 'ask the platform team to set secrets.allowedPrefix in the environment file',
        },
      ];
    const prefix = secretPrefix(secretsPrefix);
    return [
      ...when(!reference.name.startsWith(prefix), {
        path,
        must: `must have a name that starts with ${prefix} in environment ${environment}`,
        got: text,
        fix: `store the value under ${prefix}<name>, or ask the platform team`,
      }),
      ...when((reference.region ?? region) !== region || (reference.account ?? account) !== account, {
        path,
        must: `must be in account ${account} and ${region}, like the job`,
        got: text,
        fix: 'use the copy in that account and region, preferably by its name only',
      }),
    ];
  });
}

const GUIDE = 'docs/secrets.md';

/** Rules for secrets. */
export const SECRET_RULES: readonly Rule[] = [
  SECRET_IN_CLEAR,
  {
    id: 'secrets/names',
    level: 'error',
    what: 'The environment variable of a secret is not used otherwise.',
    why: 'If a variable is set in two places, one value overrides the other, and programs in the container read variables such as AWS_REGION.',
    source: GUIDE,
    check: names,
  },
  {
    id: 'secrets/readable',
    level: 'error',
    what: 'Secrets require a container that the Slipway driver starts and that has network access.',
    why: 'The driver reads secrets with the role of the job; without the driver, the variable would not be set.',
    source: GUIDE,
    check: readable,
  },
  {
    id: 'secrets/allowed',
    level: 'error',
    what: 'Secret names start with the prefix of the environment, and the secrets are in the account and region of the job.',
    why: 'The role of the job may read no other secrets; the job would start its instances and fail immediately.',
    source: GUIDE,
    check: allowed,
  },
];
