import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { Config } from '../../../../lib/core/catalog/model/config-fields';
import { publishedScaling } from '../../../../lib/core/catalog/model/config-rope';
import IMPORTED from '../../../../lib/core/catalog/model/imported-families.json';
import { PRESETS } from '../../../../lib/core/catalog/model/presets';
import { publishedConfigs } from '../../../../lib/core/catalog/model/published';
import { readConfig } from '../../../../lib/core/catalog/model/read-config';
import type { ModelShape } from '../../../../lib/core/catalog/model/shape';
import { configKeys } from '../../../../lib/core/config/inline';

const FILE = path.join(__dirname, '../../../fixtures/published-configs.jsonl');
const published: [name: string, config: Config][] = readFileSync(FILE, 'utf8')
  .trim()
  .split('\n')
  .map((line) => configKeys(line) as { model: string; config: Config })
  .map(({ model, config }) => [model, config]);
const presets = Object.entries(PRESETS);
const READ = [...presets, ...published].filter(
  ([, config]) => Object.hasOwn(IMPORTED, String(config.model_type)) && readConfig(config).shape,
);
const shapeOf = (config: Config) => readConfig(config).shape as ModelShape;
const ARCHITECTURE: ModelShape = {
  ...{ layers: 4, hiddenSize: 64, attentionHeads: 4, kvHeads: 2, ffnHiddenSize: 96, vocabularySize: 100 },
  ...{ gatedMlp: true, tiedEmbeddings: false, ropeTheta: 10_000, normEpsilon: 1e-5 },
};
const EXPERTS = { experts: 4, expertsPerToken: 2 };
const kindsOf = (m: Partial<ModelShape>) =>
  publishedConfigs({ ...ARCHITECTURE, ...m }).map(({ config }) => config.model_type);

test.each(READ)('every export of %s is read as the same model', (_name, config) => {
  const { family, ropeScaling, ...shape } = shapeOf(config);
  const found = publishedConfigs(shapeOf(config), config);
  expect(found[0]?.config.model_type).toBe(config.model_type);
  for (const { config: exported } of found) {
    const { family: again, ropeScaling: scaling, ...rest } = shapeOf(exported);
    expect(rest).toEqual(shape);
    expect(publishedScaling(scaling)).toEqual(publishedScaling(ropeScaling));
    expect({ ...again, modelType: '' }).toEqual({ ...family, modelType: '' });
  }
});

test.each<[kinds: string[], m: Partial<ModelShape>]>([
  [['llama', 'mistral'], {}],
  [['llama'], { attentionBias: true }],
  [['mistral'], { slidingWindow: { size: 16, pattern: 'all' } }],
  [['mixtral'], EXPERTS],
  [['qwen3'], { qkNorm: true }],
  [['qwen3_moe'], { qkNorm: true, ...EXPERTS, expertFfnHiddenSize: 40, denseLayers: 1 }],
  [['slipway-plain-mlp'], { gatedMlp: false }],
  [['slipway-plain-mlp'], { gatedMlp: false, ...EXPERTS }],
  [['slipway'], { gatedMlp: false, attentionBias: true }],
  [['slipway'], { slidingWindow: { size: 16, pattern: 'alternate' } }],
  [['slipway'], { logitSoftcap: { final: 30 } }],
  [['slipway'], { mtpLayers: 1 }],
])('files of %s describe an architecture of a run file with %o', (kinds, m) => {
  expect(kindsOf(m)).toEqual(kinds);
});

test('a file says what its missing keys mean where that is another model', () => {
  const qwen = { ...PRESETS['qwen3-8b'], sliding_window: 4096 };
  const [found] = publishedConfigs(shapeOf(qwen), qwen);
  expect(found?.missing).toMatchObject({ rope_theta: 10_000, num_key_value_heads: 32, hidden_size: null });
  expect(found?.missing).not.toHaveProperty('head_dim');
  expect(found?.accepted).not.toHaveProperty('sliding_window');
  expect(found?.accepted.hidden_act).toEqual(['silu', null, 'swish']);
});

test('a list by layer takes the place of the keys that it replaces', () => {
  const gemma = PRESETS['gemma3-4b'] ?? {};
  const [found] = publishedConfigs(shapeOf(gemma), gemma);
  expect(found?.replaced.layer_types).toContain('sliding_window_pattern');
  expect(found?.accepted.sliding_window_pattern?.[0]).toBe(6);
});
