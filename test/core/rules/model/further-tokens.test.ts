import { expect, test } from 'vitest';
import { BASE, issuesOf } from '../../../support/runs';

const SHAPE = { layers: 2, hiddenSize: 1024, attentionHeads: 16, ffnHiddenSize: 4096, vocabularySize: 256 };
const found = (mtpLayers: number | undefined, changes: object = {}, given: object = {}, id = 'model/further-tokens') =>
  issuesOf(
    {
      ...BASE,
      model: { architecture: { ...SHAPE, mtpLayers } },
      training: { sequenceLength: 1024, microBatchSize: 1, globalBatchSize: 16, steps: 10 },
      code: { source: 'builtin', arguments: given },
      distribution: { library: 'fsdp' },
      data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
      ...changes,
    },
    id,
  );

test('modules that predict further tokens train with fsdp, and their weight is a number above 0', () => {
  expect(found(1)).toEqual([]);
  expect(found(2, {}, { 'mtp-loss': 0.1 })).toEqual([]);
  expect(found(undefined)).toEqual([]);
});

const training = { sequenceLength: 1024, globalBatchSize: 16, steps: 10 };
test.each([
  [{ distribution: { library: 'deepspeed' } }, 'must be left out with deepspeed in the built-in trainer'],
  [{ training: { ...training, lora: { rank: 4 } } }, 'must be left out with training.lora'],
  [{ training: { ...training, objective: 'dpo' } }, 'must be left out with objective dpo'],
  [{ training: { ...training, sequenceLength: 2 } }, 'must be less than sequenceLength'],
])('are refused with %j: %s', (changes, must) => {
  const issues = found(2, changes);
  expect(issues).toMatchObject([{ level: 'error', path: 'model.architecture.mtpLayers' }]);
  expect(issues[0]?.message).toContain(must);
});

test('a weight of 0 is refused, and one without modules says nothing', () => {
  expect(found(1, {}, { 'mtp-loss': 0 })).toMatchObject([{ level: 'error', path: 'code.arguments.mtp-loss' }]);
  expect(found(undefined, {}, { 'mtp-loss': 0.1 })).toMatchObject([{ level: 'warning' }]);
});

test('they are not split by tensor parallelism, and SMP v2 does not know them', () => {
  const split = { distribution: { library: 'fsdp', parameters: { tensor_parallel_degree: 2 } } };
  expect(found(1, split, {}, 'model/builtin-split')).toMatchObject([{ level: 'error' }]);
  expect(found(undefined, split, {}, 'model/builtin-split')).toEqual([]);
  const whole = { distribution: { library: 'fsdp', parameters: { tensor_parallel_degree: 1 } } };
  expect(found(1, whole, {}, 'model/builtin-split')).toEqual([]);
});
