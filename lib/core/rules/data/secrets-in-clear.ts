import { secretIn } from '../../config/formats/secret-values';
import type { RunSpec } from '../../config/run-spec';
import { type Finding, type Rule, when } from '../rule';

/** Names of variables and arguments that conventionally contain secrets: WANDB_API_KEY, db-password, aws_secret_access_key. */
const SECRET_NAME = /(^|[_-])(api[_-]?key|access[_-]?key|private[_-]?key|secret|password|passwd|credentials?)$/i;
/** A token of a service, matched only in names of environment variables: arguments such as `pad-token` concern text. */
const TOKEN_VARIABLE = /(^|_)(AUTH|ACCESS|HF|HUB|GITHUB|GH|GITLAB|API|BEARER|SESSION|PYPI)_TOKEN$/i;
/** Shorter values are probably switches, placeholders or names. */
const SHORTEST = 8;

function inClear({ environmentVariables, hyperparameters, code, distribution }: RunSpec): Finding[] {
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
      when(isLikelySecret(name, value, names), {
        path: `${section}.${name}`,
        must: 'must not contain a secret: it is visible to everyone who may describe the job or read the job file',
        got: 'a value in clear text',
        fix,
      }),
    ),
  );
}

function isLikelySecret(name: string, value: unknown, names: readonly RegExp[]): boolean {
  if (typeof value !== 'string') return false;
  if (secretIn(value)) return true;
  const isPlace = /^([a-z0-9]+:\/\/|\/|\.)|[<>{}]/i.test(value);
  return value.length >= SHORTEST && !isPlace && names.some((pattern) => pattern.test(name));
}

/** The rule for secrets in clear text in a run file. */
export const SECRET_IN_CLEAR: Rule = {
  id: 'secrets/in-clear',
  level: 'warning',
  mayAcknowledge: true,
  isLocal: true,
  what: 'Environment variables, hyperparameters and arguments contain no secrets.',
  why: 'They are part of the request and the job file, and are visible in DescribeTrainingJob, the console, reports and the repository of the run file.',
  source: 'docs/secrets.md',
  check: inClear,
};
