import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Config } from '../../../../lib/core/catalog/model/config-fields';
import { activeParameterCount, parameterCount, parameterShape } from '../../../../lib/core/catalog/model/parameters';
import { readConfig } from '../../../../lib/core/catalog/model/read-config';
import { parseYaml } from '../../../../lib/core/config/reading/yaml-file';
import { MEMORY_CONSTANTS } from '../../../../lib/core/planner/constants';
import { heldActivations } from '../../../../lib/core/planner/memory/activations';
import { attentionFlopsPerToken } from '../../../../lib/core/planner/model-size';
import { planLayout } from '../../../../lib/core/planner/plan';
import { layout } from '../../../support/layouts';

/**
 * A config.json as its makers publish it, of quantization_config the method alone: keys and values, and the repository that quotes it. The
 * counts are those of transformers (test/containers/test_published_configs.py).
 */
interface Published {
  model: string;
  source: string;
  part?: 'text_config';
  parameters?: number;
  active?: number;
  /** Keys for which the file is refused. */
  refused?: string[];
  config: Config;
}

const LINES = readFileSync(path.join(__dirname, '../../../fixtures/published-configs.jsonl'), 'utf8')
  .trim()
  .split('\n');
// Published files contain Infinity, which JSON.parse does not take.
const FILES = LINES.map((line) => parseYaml(line).data as Published);
const READ = FILES.filter((file) => !file.refused);

describe.each(READ)('$model of $source', ({ config, parameters, active }) => {
  test('is read and counted', () => {
    const { shape, problems } = readConfig(config);
    expect(problems).toEqual([]);
    if (!shape) throw new Error('no shape');
    const counted = parameterShape(shape);
    expect(Math.abs(parameterCount(counted) / (parameters ?? 0) - 1)).toBeLessThan(0.001);
    expect(Math.abs(activeParameterCount(counted) / (active ?? 0) - 1)).toBeLessThan(0.001);
  });

  test('is planned', () => {
    const { shape } = readConfig(config);
    if (!shape) throw new Error('no shape');
    const plan = planLayout(layout({ model: parameterShape(shape), recompute: 'full' }));
    if (typeof plan === 'string') throw new Error(plan);
    expect(plan.step.total).toBeGreaterThan(0);
    expect(plan.interval80[0]).toBeLessThan(plan.interval80[1]);
  });
});

test.each(FILES.filter((file) => file.refused))('$model of $source is refused by name', ({ config, refused }) => {
  const { shape, problems } = readConfig(config);
  expect(shape).toBeUndefined();
  expect(problems.map(({ key }) => key)).toEqual(refused);
});

test.each([
  ['qwen3_5_text', 'attn_output_gate', false],
  ['qwen3_5_text', 'output_gate_type', 'sigmoid'],
  ['qwen3_5_moe_text', 'output_gate_type', 'silu'],
  ['qwen3_moe', 'use_qk_norm', false],
  ['qwen3_moe', 'qkv_bias', true],
  ['qwen3_moe', 'shared_expert_intermediate_size', 512],
  ['qwen2', 'use_mrope', true],
  ['gemma2', 'sliding_window_size', 512],
  ['phi', 'rotary_dim', 8],
  ['nemotron_h', 'norm_eps', 0.001],
  ['nemotron_h', 'attention_head_dim', 64],
  ['mimo_v2_flash', 'swa_head_dim', 128],
  ['deepseek_v32', 'layer_types', Array(61).fill('full_attention')],
  ['glm_moe_dsa', 'indexer_types', Array(78).fill('half')],
  ['step3p5', 'layer_types', Array(47).fill('full_attention')],
  ['gemma4_text', 'per_layer_config', { 5: { head_dim: 512 } }],
])('fails: %s with %s %j, another model, by that key', (modelType, key, value) => {
  const published = READ.find(({ config }) => config.model_type === modelType);
  expect(published).toBeDefined();
  expect(readConfig({ ...published?.config, [key]: value }).problems).toMatchObject([{ key }]);
});

const shapeOf = (model: string, changed: Config = {}) => {
  const { shape } = readConfig({ ...FILES.find((file) => file.model === model)?.config, ...changed });
  if (!shape) throw new Error(`${model} is not read`);
  return parameterShape(shape);
};
const V32 = 'deepseek-ai/DeepSeek-V3.2';

test('attention to selected positions costs what is selected, and the selection costs every position', () => {
  const [selected, all] = [shapeOf(V32), shapeOf('deepseek-ai/DeepSeek-V3')].map(
    (shape) => (sequence: number) => attentionFlopsPerToken(shape, sequence),
  );
  if (!selected || !all) throw new Error('no shapes');
  // 64 heads of 128 score every position in 61 layers, in one product forward and two backward.
  const scored = 6 * 64 * 128 * 61;
  expect(selected(1 << 17) - selected(1 << 16)).toBeGreaterThan(scored * (1 << 16));
  expect(selected(1 << 17)).toBeLessThan(all(1 << 17) / 4);
  expect(selected(2048) - scored * 2048).toBeCloseTo(all(2048), -3);
});

test('layers of Kimi K3 are counted once: the first has a recurrence and no experts', () => {
  const kinds = shapeOf('moonshotai/Kimi-K3').kinds?.map(({ layers, block }) => [
    layers,
    block.experts,
    block.recurrence !== undefined,
  ]);
  expect(kinds).toEqual([
    [68, 896, true],
    [24, 896, false],
    [1, 1, true],
  ]);
});

// The makers state 196 billion parameters and 11 billion active ones without embedding and head.
test('windowed layers of Step 3.7 have more heads, and every head a gate', () => {
  const attention = (heads: number) => 4096 * (128 * (2 * heads + 16) + heads) + 256;
  const experts = 42 * (289 * 3 * 4096 * 1280 + 288 * 4096);
  const total = 12 * attention(64) + 33 * attention(96) + experts + 3 * 3 * 4096 * 11_264 + 91 * 4096;
  expect(parameterCount(shapeOf('stepfun-ai/Step-3.7-Flash'))).toBe(total + 2 * 128_896 * 4096);
});

test('blocks of Nemotron-NAS with parts that are not known are refused', () => {
  const published = FILES.find(({ model }) => model.endsWith('Nemotron-Super-49B-v1'))?.config as {
    block_configs: { attention: object }[];
  };
  const [first, ...others] = published.block_configs;
  const changed = [{ ...first, attention: { ...first?.attention, replace_with_linear: true } }, ...others];
  expect(readConfig({ ...published, block_configs: changed }).problems).toMatchObject([{ key: 'block_configs' }]);
});

test('more residual streams, which blocks keep, need more memory', () => {
  const kept = (streams: number) => {
    const model = shapeOf('deepseek-ai/DeepSeek-V4-Flash', { hc_mult: streams });
    return heldActivations(layout({ model, recompute: 'full' }), MEMORY_CONSTANTS, model.layers, true).kept;
  };
  expect(kept(4)).toBeCloseTo(4 * kept(1), -3);
});
