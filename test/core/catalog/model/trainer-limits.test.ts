import { expect, test } from 'vitest';
import { trainerLimits } from '../../../../lib/core/catalog/model/trainer-limits';
import { findModel } from '../../../../lib/core/catalog/models';

test.each([
  'gpt-oss-20b',
  'gpt-oss-120b',
  'deepseek-v2',
  'deepseek-v2-lite',
  'deepseek-v3',
  'kimi-k2',
  'llama4-scout',
  'llama4-maverick',
  'qwen1.5-moe-a2.7b',
  'qwen3-30b-a3b',
])('the trainer takes %s', (name) => {
  const shape = findModel(name);
  if (!shape) throw new Error(`${name}: must be a preset`);
  expect(trainerLimits(shape).untrained).toEqual([]);
});

test('the limits of a model name its parts and sizes in the terms of the run file', () => {
  const shape = findModel('deepseek-v3');
  expect(shape && trainerLimits({ ...shape, mtpLayers: 1, partialRotary: 0.5 })).toMatchObject({
    untrained: ['partialRotary'],
    beyondLlama: expect.arrayContaining(['latentAttention', 'mtpLayers', 'routing.bias', 'routing.score sigmoid']),
    unsplit: ['mtpLayers'],
    split: { ffnHiddenSize: 18_432, expertFfnHiddenSize: 2048, 'the inner size of shared experts': 2048 },
  });
});
