import { secretIn, secretPrefix, secretReference } from '../../config/formats/secrets';
import { entriesOf, type Finding, type Rule, type RuleContext, regionOf, rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';

/** Environment variables that a run file may not set, or should not set without a reason; the first group that matches a name decides. */
const RESERVED: readonly { names: RegExp; level: 'error' | 'warning' | undefined; must: string; fix: string }[] = [
  {
    names:
      /^AWS_(CONTAINER_|ENDPOINT_URL|(DEFAULT_)?(PROFILE|REGION)$|ROLE_ARN$|(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|SECURITY_TOKEN|WEB_IDENTITY_TOKEN_FILE|CONFIG_FILE|SHARED_CREDENTIALS_FILE)$)/,
    level: 'error',
    must: 'must not replace the credentials, the region or the endpoints of AWS, with which the driver and the trainer read and write',
    fix: 'remove it; the execution role of the team needs the permission, or set it in the code of the run',
  },
  {
    // Those that users set are settings of the driver (`SLIPWAY_PROBE_SECONDS`) and of smoke runs.
    names: /^SLIPWAY_(?![A-Z_]+_SECONDS$|DEEPSPEED_CONFIG$|HOSTNAME_SHIM$|NUMA_BINDING$|SMOKE$)/,
    level: 'error',
    must: 'must not be a variable that Slipway sets for the ranks',
    fix: 'use another name',
  },
  {
    names: /^(SM_(HOST|CURRENT_|MASTER_|INSTANCE_GROUPS|RESOURCE_CONFIG$|TRAINING_ENV$)|SAGEMAKER_BASE_DIR$)/,
    level: 'error',
    must: 'must not be a variable that describes the cluster of the job',
    fix: 'use another name',
  },
  {
    names: /^(BASH_ENV|BASHOPTS|SHELLOPTS|LD_AUDIT|PYTHONHOME|PYTHONSTARTUP|PYTHONEXECUTABLE|PYTHONPLATLIBDIR)$/,
    level: 'error',
    must: 'must not be a variable that runs or replaces code before the driver starts',
    fix: 'remove it, or set it in the code of the run',
  },
  {
    names: /^(PATH|HOME|PYTHONPATH|PYTHONUSERBASE|PYTHONINSPECT|LD_\w+)$|^(SM_|SAGEMAKER_)/,
    level: 'warning',
    must: 'must be a variable that neither the image nor SageMaker sets, because it replaces their value in all programs of the container, also in the driver',
    fix: 'set it in the code of the run, or acknowledge it',
  },
  {
    names: /^(MASTER_ADDR|NODE_RANK|GROUP_RANK|RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE)$/,
    level: 'warning',
    must: 'must be a variable that the launcher does not set: every host would get the same value, and its ranks would not find those of the others',
    fix: 'remove it, because the driver sets it, or acknowledge it',
  },
  // Programs in the container read them, so that a secret must not have such a name; a run file may set them.
  { names: /^(AWS_|SLIPWAY_|PYTHON)/, level: undefined, must: '', fix: '' },
];

const groupOf = (name: string) => RESERVED.find(({ names }) => names.test(name));

const reserved =
  (level: 'error' | 'warning') =>
  ({ environmentVariables }: RunSpec, context: RuleContext): Finding[] =>
    Object.entries(environmentVariables).flatMap(([name, value]) => {
      const group = groupOf(name);
      const isOwnRegion = /^AWS_(DEFAULT_)?REGION$/.test(name) && value === regionOf(context);
      if (group?.level !== level || isOwnRegion) return [];
      return { path: `environmentVariables.${name}`, must: group.must, got: name, fix: group.fix };
    });

/** Paths in which huggingface_hub expands ~ and variables. https://github.com/huggingface/huggingface_hub/pull/2945, 2026-11-30 */
const EXPANDED = /\.HF_(HOME|HUB_CACHE|ASSETS_CACHE|TOKEN_PATH)$/;

/** `$NAME` or `${NAME}`. */
const REFERENCE = /\$(\{[A-Za-z_]\w*\}|[A-Za-z_]\w*)/;

/** Placeholders of locations, such as `s3://{dataBucket}/`. */
const PLACEHOLDER = /\{(dataBucket|checkpointBucket|team|runId|fsx|fsxPath)\}/;

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

export const SECRET_RULES: readonly Rule[] = [
  rule('secrets/in-clear', 'warning, local, may acknowledge', (run) => {
    const fix =
      run.distribution.contract === 'entrypoint'
        ? 'store it in Secrets Manager and name it under secrets, and replace the one that was written here'
        : 'store it in Secrets Manager, read it in the script, and replace the one that was written here';
    const entries = entriesOf(run, ['environmentVariables', 'hyperparameters', 'code.arguments']);
    return entries.flatMap(({ section, path, key, value }) => {
      const names = section === 'environmentVariables' ? [SECRET_NAME, TOKEN_VARIABLE] : [SECRET_NAME];
      return when(isLikelySecret(key, value, names), path, {
        must: 'must not contain a secret: it is visible to everyone who may describe the job or read the job file',
        got: 'a value in clear text',
        fix,
      });
    });
  }),
  rule('secrets/names', 'error', ({ secrets = {}, environmentVariables }) =>
    Object.keys(secrets).flatMap((name) => [
      ...when(name in environmentVariables, `secrets.${name}`, {
        must: 'must not also be in environmentVariables',
        got: name,
        fix: 'keep one of them; neither may contain the value of a secret',
      }),
      ...when(groupOf(name) !== undefined, `secrets.${name}`, {
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

/** Rules for names and values of environment variables. */
export const RESERVED_VARIABLE_RULES: readonly Rule[] = [
  rule('code/reserved-variables', 'error, local', reserved('error')),
  rule('code/replaced-variables', 'warning, local, may acknowledge', reserved('warning')),
  rule('code/unexpanded-variables', 'warning, local, may acknowledge', (run) => {
    const words = run.distribution.contract === 'entrypoint' ? (['code.arguments'] as const) : [];
    const values = entriesOf(run, ['environmentVariables', ...words]).filter(({ path }) => !EXPANDED.test(path));
    const texts = values.flatMap(({ path, value }) => [value].flat().map((one) => ({ path, value: String(one) })));
    return texts.flatMap(({ path, value }) => [
      ...when(REFERENCE.test(value), path, {
        must: 'must not refer to a variable, because nothing expands it: the program gets the text with the dollar sign',
        got: REFERENCE.exec(value)?.[0],
        fix: 'write the whole value, or read the variable in the code of the run',
      }),
      ...when(/^~(\/|$)/.test(value), path, {
        must: 'must not begin with ~, because nothing expands it: the program gets the path of a folder with that name',
        fix: 'write the whole path in the container, such as /tmp/cache',
      }),
      ...when(PLACEHOLDER.test(value), path, {
        must: 'must not contain a placeholder, which is filled in only in the locations of a run file',
        got: PLACEHOLDER.exec(value)?.[0],
        fix: 'write the whole value, or name the location under data and pass its folder below /opt/ml/input/data',
      }),
    ]);
  }),
];
