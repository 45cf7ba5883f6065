// A rule that is local judges one value alone, so that its finding is shown even where the schema refused other parts of the file.
import { expect, test } from 'vitest';
import { RULES } from '../../lib/rules';

test('the rules whose finding holds whatever else is wrong', () => {
  expect(RULES.filter((rule) => rule.isLocal).map(({ id }) => id)).toEqual([
    'compute/instance-type',
    'compute/group-names',
    'compute/legacy-type',
    'code/folder',
    'code/line-endings',
    'code/archive',
    'code/container-options',
    'code/reserved-variables',
    'code/replaced-variables',
    'code/unexpanded-variables',
    'progress/step-regex',
    'progress/loss-regex',
    'image/version',
    'image/uri',
    'image/private-registry',
    'image/outside-ecr',
    'distribution/library',
    'deepspeed/stage',
    'smp-v1/parameters',
    'smp-v2/parameters',
    'model/named',
    'model/config',
    'model/shape',
    'data/source',
    'data/fastfile',
    'data/file-system',
    'data/placeholders',
    'checkpoints/local-path',
    'checkpoints/start-from',
    'queue/after',
    'limits/hyperparameters',
    'limits/environment-variables',
    'limits/tags',
    'limits/metrics',
    'observability/profiler',
    'secrets/in-clear',
  ]);
});
