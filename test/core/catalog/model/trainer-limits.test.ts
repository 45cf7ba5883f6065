import { expect, test } from 'vitest';
import { trainedModel, trainerLimits } from '../../../../lib/core/catalog/model/trainer-limits';
import { findModel } from '../../../../lib/core/catalog/models';

const SIZES = { layers: 4, hiddenSize: 64, attentionHeads: 4, kvHeads: 2, ffnHiddenSize: 96, vocabularySize: 100 };
const PLAIN = { ...SIZES, gatedMlp: true, tiedEmbeddings: false };
const MIXTURE = { ...PLAIN, experts: 8, expertsPerToken: 2 };
const WINDOW = { size: 8, pattern: 'all' as const };
const LATENT = { kvRank: 8, nopeHeadSize: 12, ropeHeadSize: 8, valueHeadSize: 10 };

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

test.each([
  [PLAIN, { headSize: 16, kvHeads: 2, denseLayers: [], family: { modelType: '', sharedFfnHiddenSize: 0 } }],
  [{ ...PLAIN, headSize: 24 }, { headSize: 24 }],
  [
    { ...PLAIN, latentAttention: LATENT },
    { headSize: 20, kvHeads: 4 },
  ],
  [
    { ...MIXTURE, denseLayers: 2, sharedExperts: 3 },
    { denseLayers: [0, 1], family: { sharedFfnHiddenSize: 288 } },
  ],
  [
    { ...MIXTURE, denseLayers: [3], sharedExperts: 3, expertFfnHiddenSize: 40 },
    { denseLayers: [3], family: { sharedFfnHiddenSize: 120 } },
  ],
  [
    { ...MIXTURE, sharedExperts: 1, family: { modelType: 'qwen2_moe', sharedFfnHiddenSize: 72 } },
    { denseLayers: [], family: { modelType: 'qwen2_moe', sharedFfnHiddenSize: 72 } },
  ],
  [{ ...PLAIN, family: { modelType: 'granite', sharedFfnHiddenSize: 72 } }, { family: { sharedFfnHiddenSize: 0 } }],
  [{ ...PLAIN, qkNorm: true }, { family: { modelType: 'qwen3' } }],
  [{ ...MIXTURE, qkNorm: true, slidingWindow: WINDOW }, { family: { modelType: 'qwen3_moe' } }],
  [{ ...PLAIN, slidingWindow: WINDOW }, { family: { modelType: 'mistral' } }],
])('the trainer gets what follows from %j', (shape, expected) => {
  expect(trainedModel(shape)).toMatchObject({ ...expected, limits: trainerLimits(shape) });
});
