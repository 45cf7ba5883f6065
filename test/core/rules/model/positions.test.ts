import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findModel, MODEL_NAMES, POSITIONS_OF_PRESETS, scaledPositions } from '../../../../lib/core/catalog/models';
import { BASE, issuesOf } from '../../../support/runs';

const WEIGHTS = { weights: 's3://{dataBucket}/weights/' };
const found = (model: object, sequenceLength: number) =>
  issuesOf(
    {
      ...BASE,
      model,
      training: { objective: 'sft', sequenceLength, microBatchSize: 1, globalBatchSize: 16, steps: 10 },
      code: { source: 'builtin' },
      compute: { instanceType: 'ml.p5en.48xlarge', instanceCount: 2 },
      distribution: { library: 'fsdp', parameters: { context_parallel_degree: 4 } },
      data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
    },
    'training/positions',
  );
const config = (changes: object) =>
  JSON.stringify({
    model_type: 'qwen3',
    num_hidden_layers: 2,
    hidden_size: 128,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    intermediate_size: 256,
    vocab_size: 512,
    max_position_embeddings: 4096,
    ...changes,
  });
const yarn = { rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 4096 } };

test('sequences beyond the positions of the weights are warned of', () => {
  expect(found({ preset: 'qwen3-8b', ...WEIGHTS }, 131_072)).toEqual([
    {
      rule: 'training/positions',
      level: 'warning',
      path: 'training.sequenceLength',
      message:
        'training.sequenceLength: must be at most the 40960 positions for which the weights of qwen3-8b were made, got 131072; use 40960, or give model.config with the rope_scaling and max_position_embeddings of the longer context',
    },
  ]);
});

test.each([
  ['up to the positions', { preset: 'qwen3-8b', ...WEIGHTS }, 40_960],
  ['from random values, which learn any length', { preset: 'qwen3-8b' }, 131_072],
  ['of a preset whose positions are scaled', { preset: 'llama3.1-8b', ...WEIGHTS }, 131_072],
  ['of a configuration with scaling', { config: config(yarn), ...WEIGHTS }, 16_384],
  ['of a configuration without positions', { config: config({ max_position_embeddings: null }), ...WEIGHTS }, 16_384],
])('sequences %s are accepted', (_what, model, length) => {
  expect(found(model, length)).toEqual([]);
});

test.each([
  [{ config: config({}), ...WEIGHTS }, 8192, 4096],
  [{ config: config(yarn), ...WEIGHTS }, 32_768, 16_384],
  [{ preset: 'deepseek-v3', ...WEIGHTS }, 262_144, undefined],
])('a model %j with sequences of %i has %s positions', (model, length, positions) => {
  expect(found(model, length).map((issue) => issue.message)).toEqual(
    positions === undefined ? [] : [expect.stringContaining(`the ${positions} positions`)],
  );
});

test('every preset with positions exists, and most that can be fine-tuned have them', () => {
  expect([...POSITIONS_OF_PRESETS.keys()].filter((name) => !findModel(name))).toEqual([]);
  expect(POSITIONS_OF_PRESETS.size / MODEL_NAMES.length).toBeGreaterThan(0.6);
});

test('law: a length is warned of exactly when it is beyond the positions with scaling', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...POSITIONS_OF_PRESETS),
      fc.integer({ min: 1, max: 40 }),
      ([preset, stated], times) => {
        const length = times * 16_384;
        const positions = scaledPositions(stated, findModel(preset)?.ropeScaling);
        expect(found({ preset, ...WEIGHTS }, length)).toHaveLength(length > positions ? 1 : 0);
      },
    ),
  );
});
