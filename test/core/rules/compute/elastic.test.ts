import { describe, expect, test } from 'vitest';
import { checkRun } from '../../../../lib/core/rules';
import { elasticSizes } from '../../../../lib/core/rules/compute/hosts';
import { BASE, issuesOf, runOf } from '../../../support/runs';

const BUILTIN = {
  model: { preset: 'llama3-8b' },
  training: { sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 64, steps: 1000 },
  code: { source: 'builtin' },
  data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
};
const file = (instanceCount: unknown, rest: object = {}) => ({
  ...BASE,
  ...BUILTIN,
  ...rest,
  compute: { instanceType: 'ml.p5.48xlarge', instanceCount, ...(rest as { compute?: object }).compute },
});
const said = (given: object) => issuesOf(given, 'compute/elastic').map(({ rule, path }) => `${rule} ${path}`);

describe('sizes', () => {
  test.each<[string, object, number[]]>([
    ['divide the global batch', file({ min: 1, max: 8 }), [8, 4, 2, 1]],
    ['are not below min', file({ min: 2, max: 8 }), [8, 4, 2]],
    ['are one for a plain number: none', file(8), []],
    ['divide the degrees', file({ min: 1, max: 8 }, { distribution: { parameters: { shard_degree: 32 } } }), [8, 4]],
    [
      'are at most eight, in about equal ratios',
      file({ min: 1, max: 512 }, { training: { ...BUILTIN.training, globalBatchSize: 4096 * 27 } }),
      [512, 216, 96, 36, 16, 6, 2, 1],
    ],
  ])('%s', (_, given, sizes) => {
    const found = elasticSizes(runOf(given));
    expect(found.length).toBe(sizes.length);
    if (sizes.length < 8) expect(found).toEqual(sizes);
    expect([found[0], found.at(-1)]).toEqual([sizes[0], sizes.at(-1)]);
  });

  test('keep what the run was at its largest, but for EFA on one host', () => {
    const run = runOf(file({ min: 1, max: 8 }));
    expect(run.compute).toMatchObject({ instanceCount: 8, elastic: { min: 1, max: 8 } });
    expect(run.network.efa).toBe('required');
  });
});

test('a run of varying size is accepted', () => {
  expect(checkRun(runOf(file({ min: 1, max: 8 }))).filter((i) => i.level === 'error')).toEqual([]);
});

test.each<[string, object, string]>([
  ['min above max', file({ min: 9, max: 8 }), 'compute/elastic compute.instanceCount.min'],
  ['one size', file({ min: 8, max: 8 }), 'compute/elastic-sizes compute.instanceCount'],
  ['a max that the batch does not divide', file({ min: 1, max: 7 }), 'compute/elastic-sizes compute.instanceCount'],
  [
    'a library whose checkpoints load on as many ranks only',
    file({ min: 1, max: 8 }, { distribution: { library: 'deepspeed' } }),
    'compute/elastic compute.instanceCount',
  ],
  [
    'alternatives with counts',
    file({ min: 1, max: 8 }, { compute: { alternatives: [{ instanceType: 'ml.p5en.48xlarge', instanceCount: 4 }] } }),
    'compute/elastic compute.alternatives',
  ],
  [
    'no checkpoints',
    file({ min: 1, max: 8 }, { checkpoints: { mode: 'none' } }),
    'compute/elastic-checkpoints checkpoints.mode',
  ],
  [
    'own code that says nothing',
    {
      ...BASE,
      checkpoints: { mode: 'managed' },
      compute: { instanceType: 'ml.p5.48xlarge', instanceCount: { min: 1, max: 8 } },
    },
    'compute/elastic-own-code compute.instanceCount',
  ],
])('fails: %s', (_, given, expected) => {
  expect(said(given)).toContain(expected);
});

test('a message names the counts that are possible', () => {
  const [found] = issuesOf(file({ min: 1, max: 7 }), 'compute/elastic-sizes');
  expect(found?.message).toContain('allowed between 1 and 7: 4, 2, 1');
});
