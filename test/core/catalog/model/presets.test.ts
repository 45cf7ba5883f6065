import { expect, test } from 'vitest';
import {
  activeParameterCount,
  embeddingParameters,
  parameterCount,
  parameterShape,
} from '../../../../lib/core/catalog/model/parameters';
import { PRESETS, presetShape } from '../../../../lib/core/catalog/model/presets';

/** Parameters in billions, and active parameters if fewer, with the precision of the model card. */
const CARDS: Readonly<Record<string, readonly [billions: number, activeBillions?: number]>> = {
  'qwen2.5-0.5b': [0.49],
  'qwen2.5-1.5b': [1.54],
  'qwen2.5-3b': [3.09],
  'qwen2.5-7b': [7.61],
  'qwen2.5-14b': [14.7],
  'qwen2.5-32b': [32.5],
  'qwen2.5-72b': [72.7],
  'qwen3-0.6b': [0.6],
  'qwen3-1.7b': [1.7],
  'qwen3-4b': [4],
  'qwen3-8b': [8.2],
  'qwen3-14b': [14.8],
  'qwen3-32b': [32.8],
  'qwen3-30b-a3b': [30.5, 3.3],
  'qwen3-235b-a22b': [235, 22],
  'qwen1.5-moe-a2.7b': [14.3, 2.7],
  'gemma-2b': [2.5],
  'gemma-7b': [8.5],
  'gemma2-2b': [2.6],
  'gemma2-9b': [9.2],
  'gemma2-27b': [27.2],
  'gemma3-1b': [1],
  'gemma3-4b': [3.9],
  'gemma3-12b': [11.8],
  'gemma3-27b': [27],
  'olmo2-7b': [7.3],
  'olmo2-13b': [13.7],
  'mistral-small-24b': [23.6],
  'mistral-large-123b': [123],
  'phi3-mini': [3.8],
  'phi4-mini': [3.8],
  'phi4-14b': [14.7],
  'phi3.5-moe': [41.9, 6.6],
  'smollm2-135m': [0.135],
  'smollm2-360m': [0.362],
  'smollm2-1.7b': [1.71],
  'smollm3-3b': [3.08],
  'starcoder2-3b': [3.03],
  'gpt-oss-20b': [20.9, 3.6],
  'gpt-oss-120b': [116.8, 5.1],
  'deepseek-v2-lite': [15.7, 2.4],
  'deepseek-v2': [236, 21],
  'deepseek-v3': [671, 37],
  'deepseek-r1': [671, 37],
  'kimi-k2': [1026, 32],
  'llama4-scout': [108, 17],
  'llama4-maverick': [400, 17],
  'glm4.5-air': [106, 12],
  'minimax-m2': [229, 10],
  'seed-oss-36b': [36],
  'ernie4.5-21b-a3b': [21.8, 3],
  'solar-open-100b': [102, 12],
};

/** Half a unit of the last digit that a model card prints, and at least 1.5 % for cards that round. */
function tolerance(billions: number): number {
  const digits = String(billions).split('.')[1]?.length ?? 0;
  return Math.max(0.5 * 10 ** -digits, 0.015 * billions);
}

test('there are at least 40 models of today', () => {
  expect(Object.keys(PRESETS).length).toBeGreaterThanOrEqual(40);
});

test.each(Object.keys(PRESETS))('%s has as many parameters as its card says', (name) => {
  const [billions = Number.NaN, activeBillions] = CARDS[name] ?? [];
  const shape = presetShape(name);
  if (!shape) throw new Error('no shape');
  const counted = parameterShape(shape);
  expect(Math.abs(parameterCount(counted) / 1e9 - billions)).toBeLessThan(tolerance(billions));
  if (activeBillions === undefined) expect(activeParameterCount(counted)).toBe(parameterCount(counted));
  else {
    // Cards round the active parameters, and some leave the embedding out.
    const active = activeParameterCount(counted) / 1e9;
    const ratios = [active, active - embeddingParameters(counted) / 1e9].map((one) => one / activeBillions - 1);
    expect(Math.min(...ratios.map(Math.abs))).toBeLessThan(0.12);
  }
});
