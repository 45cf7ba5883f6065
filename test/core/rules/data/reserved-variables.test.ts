import { describe, expect, test } from 'vitest';
import { loadRun } from '../../../../lib/core/config/load';
import { checkRun } from '../../../../lib/core/rules';

const RUN = {
  name: 'a',
  code: { source: 'src', entryPoint: 'train.py' },
  compute: { instanceType: 'ml.m5.xlarge', instanceCount: 1 },
  distribution: { launcher: 'script' },
};

/** Level and rule of what is said about a variable. */
function said(name: string, value = 'x', more: object = {}, region?: string): string[] {
  const { value: run } = loadRun(JSON.stringify({ ...RUN, ...more, environmentVariables: { [name]: value } }));
  if (!run) throw new Error('the run file is not valid');
  const found = checkRun(run, { region }).filter(({ path }) => path === `environmentVariables.${name}`);
  return found.map(({ level, rule }) => `${level} ${rule}`);
}

describe('an environment variable', () => {
  test.each([
    'AWS_ACCESS_KEY_ID',
    'AWS_CONTAINER_CREDENTIALS_FULL_URI',
    'AWS_CONTAINER_AUTHORIZATION_TOKEN',
    'AWS_ENDPOINT_URL',
    'AWS_ENDPOINT_URL_S3',
    'AWS_PROFILE',
    'AWS_REGION',
    'AWS_DEFAULT_REGION',
    'AWS_ROLE_ARN',
    'SLIPWAY_RUN_ID',
    'SLIPWAY_JOB_FILE',
    'SLIPWAY_CHECKPOINT_URI',
    'SLIPWAY_WATCHDOG_SECONDS_',
    'SM_HOSTS',
    'SM_CURRENT_HOST',
    'SAGEMAKER_BASE_DIR',
    'BASH_ENV',
    'LD_AUDIT',
    'PYTHONHOME',
    'PYTHONSTARTUP',
  ])('%s is refused', (name) => {
    expect(said(name)).toEqual(['error code/reserved-variables']);
  });

  test.each(['AWS_REGION', 'AWS_DEFAULT_REGION'])('%s of the job itself is accepted, and no other', (name) => {
    expect(said(name, 'us-west-2', {}, 'us-west-2')).toEqual([]);
    expect(said(name, 'eu-west-1', {}, 'us-west-2')).toEqual(['error code/reserved-variables']);
  });

  test.each(['LD_PRELOAD', 'LD_LIBRARY_PATH', 'PATH', 'HOME', 'PYTHONPATH', 'SM_MODEL_DIR', 'SAGEMAKER_PROGRAM'])(
    '%s is warned of',
    (name) => {
      expect(said(name)).toEqual(['warning code/replaced-variables']);
    },
  );

  test.each([
    'AWS_MAX_ATTEMPTS',
    'SLIPWAY_GPU_SECONDS',
    'SLIPWAY_WATCHDOG_SECONDS',
    'SLIPWAY_HAND_OVER_SECONDS',
    'SLIPWAY_SMOKE',
    'SLIPWAY_PROBE_SECONDS',
    'SLIPWAY_RAY_JOIN_SECONDS',
    'SLIPWAY_NUMA_BINDING',
    'SLIPWAY_HOSTNAME_SHIM',
    'SLIPWAY_DEEPSPEED_CONFIG',
    'PYTHONUNBUFFERED',
    'PYTHONHASHSEED',
    'NCCL_DEBUG',
    'MY_PATH',
    'SMOKE',
    'ENV',
  ])('%s is accepted', (name) => {
    expect(said(name)).toEqual([]);
  });

  test.each(['AWS_REGION', 'SLIPWAY_GPU_SECONDS', 'PYTHONUNBUFFERED', 'LD_PRELOAD', 'SM_HOSTS', 'BASH_ENV'])(
    'with the name %s holds no secret',
    (name) => {
      const { value: run } = loadRun(JSON.stringify({ ...RUN, secrets: { [name]: 'slipway/nlp/x' } }));
      const rules = run && checkRun(run).filter(({ path }) => path === `secrets.${name}`);
      expect(rules?.map(({ rule }) => rule)).toContain('secrets/names');
    },
  );

  test('that replaces a search path may be acknowledged', () => {
    const acknowledge = [{ rule: 'code/replaced-variables', reason: 'tcmalloc' }];
    expect(said('LD_PRELOAD', '/usr/lib/libtcmalloc.so', { acknowledge })).toEqual(['info code/replaced-variables']);
  });

  test.each(['/opt/tools:$PATH', `\${HOME}/x`, 'a$B'])('with the value %s is warned of', (value) => {
    expect(said('TOOLS', value)).toEqual(['warning code/unexpanded-variables']);
  });

  test.each(['$', '$5', 'a$', '^x$|y', '100$ {A}'])('with the value %s is accepted', (value) => {
    expect(said('TOOLS', value)).toEqual([]);
  });
});
