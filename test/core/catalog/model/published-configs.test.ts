import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Config } from '../../../../lib/core/catalog/model/config-fields';
import { activeParameterCount, parameterCount, parameterShape } from '../../../../lib/core/catalog/model/parameters';
import { readConfig } from '../../../../lib/core/catalog/model/read-config';
import { parseYaml } from '../../../../lib/core/config/reading/yaml-file';
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
  ['nemotron_h', 'moe_latent_size', 1024],
])('fails: %s with %s %j, another model, by that key', (modelType, key, value) => {
  const published = READ.find(({ config }) => config.model_type === modelType);
  expect(published).toBeDefined();
  expect(readConfig({ ...published?.config, [key]: value }).problems).toMatchObject([{ key }]);
});
