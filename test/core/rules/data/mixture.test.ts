import { expect, test } from 'vitest';
import { BASE, issuesOf, runOf } from '../../../support/runs';

const channel = (name: string) => ({ channel: name, s3: `s3://{dataBucket}/${name}/` });
const file = (mixture: object[], changes: object = {}) => ({
  ...BASE,
  model: { preset: 'llama3-8b' },
  training: { sequenceLength: 4096, microBatchSize: 1, globalBatchSize: 16, steps: 100, mixture },
  code: { source: 'builtin' },
  distribution: { library: 'fsdp' },
  data: [channel('web'), channel('code')],
  ...changes,
});
const found = (mixture: object[], changes: object = {}) => issuesOf(file(mixture, changes), 'training/mixture');
const WHOLE = [{ weights: { web: 0.8, code: 0.2 } }, { fromStep: 50, weights: { code: 1 } }];

test('a mixture of channels that are there is taken, and needs no channel train', () => {
  expect(found(WHOLE)).toEqual([]);
  expect(issuesOf(file(WHOLE), 'training/builtin-data')).toEqual([]);
});

test.each([
  [[{ weights: { web: 1, cod: 1 } }], {}, 'training.mixture[0].weights.cod', 'error'],
  [[{ weights: {} }], {}, 'training.mixture[0].weights', 'error'],
  [[{ fromStep: 3, weights: { web: 1 } }], {}, 'training.mixture[0].fromStep', 'error'],
  [[{ weights: { web: 1 } }, { weights: { code: 1 } }], {}, 'training.mixture[1].fromStep', 'error'],
  [[{ weights: { web: 1 } }, { fromStep: 100, weights: { code: 1 } }], {}, 'training.mixture[1].fromStep', 'warning'],
  [
    WHOLE,
    { code: { source: 'builtin', arguments: { 'data-channel': 'web' } } },
    'code.arguments.data-channel',
    'error',
  ],
  [WHOLE, { code: { source: './train' } }, 'training.mixture', 'warning'],
])('mixture %j with %j names %s', (mixture, changes, path, level) => {
  expect(found(mixture, changes)).toMatchObject([{ level, path }]);
});

test('a weight must be above 0, and is named with its place', () => {
  expect(() => runOf(file([{ weights: { web: 0 } }]))).toThrow(/training\.mixture\[0\]\.weights\.web/);
});
