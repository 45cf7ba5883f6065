import { acceleratorCount } from '../../catalog/instances/instances';
import { countGroups } from '../../config/formats/patterns';
import { hasGpus, instanceGroupsOf } from '../../config/resolve-run';
import { entriesOf, type Finding, type Rule, rule, ruleWhere, when } from '../../config/rule';
import { findStrategy } from '../../distribution';
import { pythonJson } from '../../distribution/python-json';

/**
 * What Slipway adds to the user's own values in a request: environment variables, cost allocation tags, hyperparameters of the SDK's script
 * mode.
 */
const OWN_ENVIRONMENT = 4;
const OWN_TAGS = 4;
const SDK_HYPERPARAMETERS = 5;

function hyperparameter(path: string, key: string, value: unknown, toolkit: boolean): Finding[] {
  const text = toolkit || typeof value !== 'string' ? pythonJson(value) : value;
  return [
    ...when(key.length > 256, path, {
      must: 'must have a name of at most 256 characters',
      got: key.length,
      fix: 'shorten it',
    }),
    ...when(key.startsWith('sagemaker_') || key === 'mp_parameters', path, {
      must: 'must not start with sagemaker_ or be mp_parameters, which the launcher sets',
      got: key,
      fix: key === 'mp_parameters' ? 'use distribution.parameters' : 'use another name',
    }),
    ...when(text.length > 2500, path, {
      must: 'must be at most 2500 characters as text',
      got: `${text.length} characters`,
      fix: 'move it to a file of the code',
    }),
    ...when(/[\r\n]/.test(text), path, { must: 'must not contain line breaks', fix: 'move it to a file of the code' }),
  ];
}

const TAG_TEXT = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;

const path = 'compute.healthCheck';

const PREEMPTIBLE = 'preemptible';

/** Rules for run time, waiting time, cost, health checks and preemption. */
export const LIMIT_RULES: readonly Rule[] = [
  rule('queue/after', 'error, local', ({ after }) =>
    after.flatMap((id, i) => {
      const isId = /^(latest:[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?|[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?)$/.test(id);
      return when(!isId, `after[${i}]`, {
        must: 'must be a run id or latest:<run name>',
        fix: 'use an id from slipway list',
      });
    }),
  ),
  rule('limits/spot-wait', 'error', ({ limits, compute, written }) => {
    const given = written.limits?.maxWaitSeconds;
    if (given === undefined) return [];
    return [
      ...when(compute.capacity !== 'spot', 'limits.maxWaitSeconds', {
        must: 'must be used with capacity spot',
        fix: 'remove it; maxPendingSeconds bounds the wait for on-demand capacity',
      }),
      ...when(compute.capacity === 'spot' && given < limits.maxRuntimeSeconds, 'limits.maxWaitSeconds', {
        must: `must be at least maxRuntimeSeconds ${limits.maxRuntimeSeconds}: it includes the run time`,
        fix: `use ${limits.maxRuntimeSeconds} or more`,
      }),
    ];
  }),
  rule('limits/pending', 'warning', ({ limits, compute }) => {
    const accelerated = instanceGroupsOf(compute).some((g) => acceleratorCount(g.instanceType) > 0);
    const isIgnored = limits.maxPendingSeconds !== undefined && !accelerated && compute.instanceType !== '';
    return when(isIgnored, 'limits.maxPendingSeconds', {
      must: 'must be used with accelerated types (ml.p, ml.g, ml.trn): others ignore it',
    });
  }),
  rule('limits/longest-run', 'warning, may acknowledge', ({ limits }) =>
    when(limits.maxRuntimeSeconds > 432_000, 'limits.maxRuntimeSeconds', {
      must: 'must be within the quota on the longest run time (432000 s by default)',
      fix: 'check it with slipway quota',
    }),
  ),
  rule('limits/hyperparameters', 'error, local', (run) => {
    const toolkit = run.distribution.contract === 'toolkit';
    const own = toolkit ? Object.keys(findStrategy(run)?.hyperparameters(run) ?? {}).length + SDK_HYPERPARAMETERS : 0;
    const entries = entriesOf(run, toolkit ? ['hyperparameters', 'code.arguments'] : ['hyperparameters']);
    return [
      ...when(entries.length + own > 100, 'hyperparameters', {
        must: `must be at most ${100 - own} (100 minus those of the launcher)`,
        got: entries.length,
        fix: 'move the others to a file',
      }),
      ...entries.flatMap(({ path, key, value }) => hyperparameter(path, key, value, toolkit)),
    ];
  }),
  rule('limits/environment-variables', 'error, local', (run) => {
    const entries = Object.entries(run.environmentVariables);
    return [
      ...when(entries.length + OWN_ENVIRONMENT > 100, 'environmentVariables', {
        must: `must be at most ${100 - OWN_ENVIRONMENT} (100 minus those of the launcher)`,
        got: entries.length,
        fix: 'move the others to a file',
      }),
      ...entries.flatMap(([name, value]) => {
        const path = `environmentVariables.${name}`;
        return [
          ...when(!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name) || name.length > 512, path, {
            must: 'must have a name of letters, digits and underscores that does not start with a digit',
            got: name,
            fix: 'rename it',
          }),
          ...when(value.length > 512, path, {
            must: 'must be at most 512 characters',
            got: `${value.length} characters`,
            fix: 'move it to a file of the code',
          }),
        ];
      }),
    ];
  }),
  rule('limits/tags', 'error, local', (run, { descriptor }) => {
    const entries = Object.entries(run.tags);
    // Every job has the environment's tags; one with the same name replaces the run's tag.
    const added = Object.keys({ ...run.tags, ...descriptor?.tags }).length - entries.length;
    return [
      ...when(entries.length + added + OWN_TAGS > 50, 'tags', {
        must: `must be at most ${50 - OWN_TAGS - added} (50 minus those of the launcher${added > 0 ? ` and ${added} of the environment` : ''})`,
        got: entries.length,
        fix: 'remove some',
      }),
      ...entries.flatMap(([key, value]) => {
        const path = `tags.${key}`;
        return [
          ...when(/^(aws|slipway):/i.test(key), path, {
            must: 'must not start with aws: or slipway:',
            got: key,
            fix: 'use another name',
          }),
          ...when(key.length === 0 || key.length > 128 || !TAG_TEXT.test(key), path, {
            must: 'must have a name of 1-128 letters, digits, spaces or _ . : / = + - @',
            got: key,
            fix: 'rename it',
          }),
          ...when(value.length > 256 || !TAG_TEXT.test(value), path, {
            must: 'must be at most 256 letters, digits, spaces or _ . : / = + - @',
            fix: 'shorten or rename it',
          }),
        ];
      }),
    ];
  }),
  rule('limits/metrics', 'error, local', (run) => {
    const all = run.observability.metrics;
    return [
      ...all.flatMap(({ name, regex }, i) => {
        const path = `observability.metrics[${i}]`;
        const groups = countGroups(regex);
        return [
          ...when(groups === undefined, `${path}.regex`, {
            must: 'must be a regular expression',
            fix: 'close its groups and brackets',
          }),
          ...when(groups === 0, `${path}.regex`, {
            must: 'must contain a group, whose match is the value',
            fix: 'use for example loss=([0-9.]+)',
          }),
          ...when(all.findIndex((m) => m.name === name) !== i, `${path}.name`, {
            must: 'must be unique (a duplicate of an earlier metric)',
            fix: 'use another name',
          }),
        ];
      }),
    ];
  }),
  ...[
    rule('compute/health-check', 'error', ({ kind, distribution: { contract } }) =>
      when(kind === 'processing' || contract !== 'entrypoint', path, {
        must: 'must be off when the driver of Slipway does not start the ranks (processing runs, distribution.contract toolkit and container)',
        fix: 'remove it, or use contract entrypoint',
      }),
    ),
    rule('compute/health-check-gpus', 'warning', (run) =>
      when(!hasGpus(run), path, { must: 'must be off on hosts without GPUs: there is nothing to check' }),
    ),
  ].map(ruleWhere(({ compute }) => (compute.healthCheck ?? 'off') !== 'off')),
  ...[
    rule('preemption/checkpoints', 'error', ({ kind, checkpoints: { mode } }) => {
      if (kind !== 'training')
        return {
          path: PREEMPTIBLE,
          must: 'must be false in a processing run, which always starts from the beginning',
        };
      return when(mode === 'none', PREEMPTIBLE, {
        must: 'must be used with checkpoints: otherwise the run restarts at step 0 after every preemption',
        got: 'checkpoints.mode none',
        fix: 'set checkpoints, or remove preemptible',
      });
    }),
    rule('preemption/own-code', 'warning, may acknowledge', ({ code, distribution, network }) => {
      const seesRequests = distribution.contract === 'entrypoint' && !network.isolation;
      return when(code.builtin === undefined, PREEMPTIBLE, {
        must: seesRequests
          ? 'must be used with code that saves and leaves with exit code 76 when SLIPWAY_HAND_OVER_FILE appears, or saves within 120 s of SIGTERM'
          : 'must be used with code that saves within 120 s of SIGTERM: requests to leave are not read under the toolkit contract or network isolation',
        got: 'custom code, which cannot be checked',
        fix: 'see "Preemption" in docs/queue.md, then acknowledge preemption/own-code',
      });
    }),
  ].map(ruleWhere(({ preemptible }) => preemptible === true)),
];
