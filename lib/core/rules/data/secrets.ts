import { secretIn, secretPrefix, secretReference } from '../../config/formats/secrets';
import { type Rule, rule, when } from '../../config/rule';
import { isReserved } from './reserved-variables';

/** Names of variables and arguments that conventionally contain secrets: WANDB_API_KEY, db-password, aws_secret_access_key. */
const SECRET_NAME = /(^|[_-])(api[_-]?key|access[_-]?key|private[_-]?key|secret|password|passwd|credentials?)$/i;
/** A token of a service, matched only in names of environment variables: arguments such as `pad-token` concern text. */
const TOKEN_VARIABLE = /(^|_)(AUTH|ACCESS|HF|HUB|GITHUB|GH|GITLAB|API|BEARER|SESSION|PYPI)_TOKEN$/i;
/** Shorter values are probably switches, placeholders or names. */
const SHORTEST = 8;

function isLikelySecret(name: string, value: unknown, names: readonly RegExp[]): boolean {
  if (typeof value !== 'string') return false;
  if (secretIn(value)) return true;
  const isPlace = /^([a-z0-9]+:\/\/|\/|\.)|[<>{}]/i.test(value);
  return value.length >= SHORTEST && !isPlace && names.some((pattern) => pattern.test(name));
}

/** Rules for secrets. */
export const SECRET_RULES: readonly Rule[] = [
  /** The rule for secrets in clear text in a run file. */
  rule(
    'secrets/in-clear',
    'warning, local, may acknowledge',
    ({ environmentVariables, hyperparameters, code, distribution }) => {
      const fix =
        distribution.contract === 'entrypoint'
          ? 'store it in Secrets Manager and name it under secrets, and replace the one that was written here'
          : 'store it in Secrets Manager, read it in the script, and replace the one that was written here';
      const places = [
        { section: 'environmentVariables', values: environmentVariables, names: [SECRET_NAME, TOKEN_VARIABLE] },
        { section: 'hyperparameters', values: hyperparameters, names: [SECRET_NAME] },
        { section: 'code.arguments', values: code.arguments, names: [SECRET_NAME] },
      ];
      return places.flatMap(({ section, values, names }) =>
        Object.entries(values).flatMap(([name, value]) =>
          when(isLikelySecret(name, value, names), `${section}.${name}`, {
            must: 'must not contain a secret: it is visible to everyone who may describe the job or read the job file',
            got: 'a value in clear text',
            fix,
          }),
        ),
      );
    },
  ),
  rule('secrets/names', 'error', ({ secrets = {}, environmentVariables }) =>
    Object.keys(secrets).flatMap((name) => [
      ...when(name in environmentVariables, `secrets.${name}`, {
        must: 'must not also be in environmentVariables',
        got: name,
        fix: 'keep one of them; neither may contain the value of a secret',
      }),
      ...when(isReserved(name), `secrets.${name}`, {
        must: 'must not be a reserved variable of the container',
        got: name,
        fix: 'use another name, such as HF_TOKEN',
      }),
    ]),
  ),
  rule('secrets/readable', 'error', ({ secrets, distribution, network }) => {
    if (!secrets) return [];
    return [
      ...when(distribution.contract !== 'entrypoint', 'secrets', {
        must: `must be used with contract entrypoint: ${distribution.contract === 'toolkit' ? 'the toolkit reads no secrets' : 'only the driver reads them'}`,
        got: `contract ${distribution.contract}`,
        fix: `${distribution.contract === 'toolkit' ? 'set distribution.contract: entrypoint, or ' : ''}read the secret in the ${distribution.contract === 'toolkit' ? 'script' : 'program of the image'}`,
      }),
      ...when(network.isolation, 'secrets', {
        must: 'must not be used with network.isolation: an isolated container cannot reach any service',
        got: 'isolation true',
        fix: 'remove one of them',
      }),
    ];
  }),
  rule('secrets/allowed', 'error', ({ secrets = {} }, { descriptor }) => {
    if (!descriptor) return [];
    const { secretsPrefix, name: environment, region, account } = descriptor;
    return Object.entries(secrets).flatMap(([variable, text]) => {
      const path = `secrets.${variable}`;
      const reference = secretReference(text);
      if (secretsPrefix === undefined)
        return {
          path,
          must: `must be allowed in environment ${environment}, which allows no secrets`,
          fix: 'ask the platform team to set secrets.allowedPrefix in the environment file',
        };
      const prefix = secretPrefix(secretsPrefix);
      return [
        ...when(!reference.name.startsWith(prefix), path, {
          must: `must have a name that starts with ${prefix} in environment ${environment}`,
          fix: `store the value under ${prefix}<name>, or ask the platform team`,
        }),
        ...when((reference.region ?? region) !== region || (reference.account ?? account) !== account, path, {
          must: `must be in account ${account} and ${region}, like the job`,
          fix: 'use the copy in that account and region, preferably by its name only',
        }),
      ];
    });
  }),
];
