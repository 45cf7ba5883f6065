import { expect, test } from 'vitest';
import { activeParameterCount, parameterCount, parameterShape } from '../../../../lib/core/catalog/model/parameters';
import { readConfig } from '../../../../lib/core/catalog/model/read-config';

/**
 * Keys that published files have and that say nothing of the layers, or leave out. The counts are those of transformers 5.23's modules on
 * the meta device for the same files (2026-11-25).
 */
const FILES: [name: string, config: Record<string, unknown>, all: number, active: number][] = [
  [
    'the text_config of Gemma 3 4B',
    {
      model_type: 'gemma3_text',
      hidden_size: 2560,
      intermediate_size: 10240,
      num_hidden_layers: 34,
      rope_scaling: { factor: 8, rope_type: 'linear' },
      sliding_window: 1024,
    },
    3_880_263_168,
    3_880_263_168,
  ],
  [
    'EXAONE 4 32B',
    {
      model_type: 'exaone4',
      head_dim: 128,
      hidden_size: 5120,
      intermediate_size: 27392,
      num_attention_heads: 40,
      num_hidden_layers: 64,
      num_key_value_heads: 8,
      sliding_window: 4096,
      sliding_window_pattern: 'LLLG',
      vocab_size: 102400,
    },
    32_003_216_384,
    32_003_216_384,
  ],
  [
    'dots.llm1',
    {
      model_type: 'dots1',
      first_k_dense_replace: 1,
      hidden_size: 4096,
      intermediate_size: 10944,
      moe_intermediate_size: 1408,
      moe_layer_freq: 1,
      n_routed_experts: 128,
      n_shared_experts: 2,
      norm_topk_prob: true,
      num_attention_heads: 32,
      num_experts_per_tok: 6,
      num_hidden_layers: 62,
      num_key_value_heads: 32,
      scoring_func: 'noaux_tc',
      sliding_window: null,
      use_sliding_window: false,
      vocab_size: 152064,
    },
    142_774_373_888,
    14_016_581_120,
  ],
  [
    'MiniMax M2',
    {
      model_type: 'minimax_m2',
      attn_type_list: [1, 1],
      hidden_size: 3072,
      intermediate_size: 1536,
      layernorm_full_attention_beta: 1,
      mlp_intermediate_size: 8192,
      num_attention_heads: 48,
      num_hidden_layers: 62,
      rotary_dim: 64,
      shared_intermediate_size: 0,
      vocab_size: 200064,
    },
    228_689_748_992,
    11_030_537_216,
  ],
  [
    'Hunyuan 7B',
    {
      model_type: 'hunyuan_v1_dense',
      add_classification_head: false,
      head_dim: 128,
      hidden_size: 4096,
      intermediate_size: 14336,
      norm_type: 'rms',
      num_attention_heads: 32,
      num_experts: 1,
      num_hidden_layers: 32,
      num_key_value_heads: 8,
      tie_word_embeddings: true,
      use_rotary_pos_emb: true,
      vocab_size: 128167,
    },
    7_504_568_320,
    7_504_568_320,
  ],
];

test.each(FILES)('%s is read as it is published', (_name, config, all, active) => {
  const { shape, problems } = readConfig(config);
  expect(problems).toEqual([]);
  if (!shape) throw new Error('no shape');
  const counted = parameterShape(shape);
  expect([parameterCount(counted), activeParameterCount(counted)]).toEqual([all, active]);
});

const EXAONE = {
  model_type: 'exaone4',
  hidden_size: 256,
  intermediate_size: 512,
  num_attention_heads: 8,
  num_key_value_heads: 8,
  num_hidden_layers: 6,
  vocab_size: 128,
};

test.each([
  ['letters', { sliding_window: 64, sliding_window_pattern: 'LLG' }, [0, 1, 3, 4]],
  ['a period', { sliding_window: 64, sliding_window_pattern: 3 }, [0, 1, 3, 4]],
  ['no pattern', { sliding_window: 64 }, [0, 1, 2, 4, 5]],
  ['no window', { sliding_window: null, sliding_window_pattern: null }, undefined],
])('windows of EXAONE by %s', (_name, config, pattern) => {
  expect(readConfig({ ...EXAONE, ...config }).shape?.slidingWindow?.pattern).toEqual(pattern);
});

test('fails: letters that name no kind of layer', () => {
  const { problems } = readConfig({ ...EXAONE, sliding_window_pattern: 'LXG' });
  expect(problems.map(({ key, got }) => [key, got])).toEqual([['sliding_window_pattern', 'LXG']]);
});

const MOE = {
  hidden_size: 256,
  intermediate_size: 512,
  moe_intermediate_size: 128,
  num_attention_heads: 8,
  num_key_value_heads: 8,
  num_hidden_layers: 4,
  num_experts_per_tok: 2,
  vocab_size: 128,
};

// transformers ignores a name that its family does not have, and takes the family's own number: such a file is no model of 16 experts.
test.each([
  ['qwen2_moe', 'n_routed_experts'],
  ['gpt_oss', 'n_routed_experts'],
  ['deepseek_v3', 'num_experts'],
  ['llama4_text', 'num_experts'],
])('fails: the number of experts of %s under %s', (model_type, key) => {
  const { problems } = readConfig({ ...MOE, model_type, [key]: 16 });
  expect(problems.map((p) => p.key)).toContain(key);
});

test.each([
  [{}, 8, 4],
  [{ n_group: 1, topk_group: 1 }, undefined, undefined],
])('groups of experts of DeepSeek-V3 with %j', (config, groups, topGroups) => {
  const { shape } = readConfig({ ...MOE, model_type: 'deepseek_v3', n_routed_experts: 16, ...config });
  expect([shape?.routing?.groups, shape?.routing?.topGroups]).toEqual([groups, topGroups]);
});

test('a gated DeltaNet model has full attention in every full_attention_interval-th layer', () => {
  const config = { ...EXAONE, model_type: 'qwen3_5_text', full_attention_interval: 2 };
  expect(readConfig(config).shape?.family?.recurrence?.layers).toEqual([0, 2, 4]);
});

const LLAMA = { ...EXAONE, model_type: 'llama' };
const LINEAR = { rope_type: 'linear', factor: 2 };

test.each([
  ['another theta', { rope_theta: 5000, rope_parameters: { rope_type: 'default', rope_theta: 7000 } }, ['rope_theta']],
  ['the same theta', { rope_theta: 7000, rope_parameters: { rope_type: 'default', rope_theta: 7000 } }, []],
  ['another scaling', { rope_scaling: LINEAR, rope_parameters: { ...LINEAR, factor: 4 } }, ['rope_scaling']],
  ['the same scaling', { rope_scaling: LINEAR, rope_parameters: { ...LINEAR, rope_theta: 7000 } }, []],
  [
    'another share of a head',
    { partial_rotary_factor: 0.5, rope_parameters: { rope_type: 'default', partial_rotary_factor: 0.25 } },
    ['partial_rotary_factor'],
  ],
])('rotary positions that stand twice: %s', (_name, config, keys) => {
  expect(readConfig({ ...LLAMA, ...config }).problems.map((p) => p.key)).toEqual(keys);
});

test('fails: Nemotron-H with another number of layers than its pattern', () => {
  const mamba = { mamba_num_heads: 4, mamba_head_dim: 16, head_dim: 32, hybrid_override_pattern: 'M-*' };
  const { problems } = readConfig({ ...EXAONE, ...mamba, model_type: 'nemotron_h' });
  expect(problems.map(({ key, got }) => [key, got])).toEqual([['num_hidden_layers', 6]]);
});
