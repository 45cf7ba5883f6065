// Layers that mix tokens by a recurrence: what a token costs and keeps does not grow with the sequence.
import { expect, test } from 'vitest';
import { type ParameterShape, parameterShape } from '../../../lib/core/catalog/model/parameters';
import { readConfig } from '../../../lib/core/catalog/model/read-config';
import type { LayoutInput } from '../../../lib/core/planner/layout';
import { attentionFlopsPerToken } from '../../../lib/core/planner/model-size';
import { planLayout } from '../../../lib/core/planner/plan';
import { layout } from '../../support/layouts';

const SIZES = {
  num_hidden_layers: 8,
  hidden_size: 2048,
  num_attention_heads: 16,
  num_key_value_heads: 4,
  intermediate_size: 8192,
  vocab_size: 32000,
};

function shapeOf(config: Record<string, unknown>): ParameterShape {
  const { shape, problems } = readConfig({ ...SIZES, ...config });
  if (!shape) throw new Error(JSON.stringify(problems));
  return parameterShape(shape);
}

const layerTypes = (recurrent: number) => ({
  layer_types: Array.from({ length: 8 }, (_, layer) => (layer < recurrent ? 'linear_attention' : 'full_attention')),
});
const hybrid = (recurrent: number) => shapeOf({ model_type: 'qwen3_5_text', ...layerTypes(recurrent) });

function planned(model: ParameterShape, changes: Partial<LayoutInput> = {}) {
  const plan = planLayout(layout({ model, ...changes }));
  if (typeof plan === 'string') throw new Error(plan);
  return plan;
}

test('only layers of attention cost a token more in a longer sequence', () => {
  const growth = (model: ParameterShape) => attentionFlopsPerToken(model, 32_768) / attentionFlopsPerToken(model, 8192);
  expect(growth(hybrid(8))).toBe(1);
  expect(growth(hybrid(0))).toBe(4);
  const grown = attentionFlopsPerToken(hybrid(6), 32_768) - attentionFlopsPerToken(hybrid(6), 8192);
  const all = attentionFlopsPerToken(hybrid(0), 32_768) - attentionFlopsPerToken(hybrid(0), 8192);
  expect(grown / all).toBeCloseTo(2 / 8, 9);
});

test('at the same tokens a step of long sequences is faster with recurrences, and its interval is wider', () => {
  const long = { sequence: 65_536, microBatch: 1, recompute: 'full' } as const;
  const [recurrent, attention] = [planned(hybrid(8), long), planned(hybrid(0), long)];
  expect(recurrent.step.total).toBeLessThan(attention.step.total);
  const width = ([low, high]: readonly [number, number]) => high / low;
  expect(width(recurrent.interval80)).toBeGreaterThan(width(attention.interval80));
});

test('scores are kept of attention alone', () => {
  const kept = (model: ParameterShape) =>
    planned(model, { attention: 'unfused', recompute: 'none', sequence: 8192 }).memoryGiB.activations;
  expect(kept(hybrid(8))).toBeLessThan(kept(hybrid(4)));
  expect(kept(hybrid(4))).toBeLessThan(kept(hybrid(0)));
});

test('a model whose layers are a recurrence, attention or a feed-forward block alone is planned', () => {
  const types = ['mamba', 'mlp', 'attention', 'mlp'];
  const model = shapeOf({ model_type: 'nemotron_h', num_hidden_layers: 4, layers_block_type: types });
  const { memoryGiB, step } = planned(model);
  for (const value of [...Object.values(memoryGiB), ...Object.values(step)]) expect(value).toBeGreaterThanOrEqual(0);
  expect(memoryGiB.activations).toBeGreaterThan(0);
  expect(step.matmul).toBeGreaterThan(0);
});
