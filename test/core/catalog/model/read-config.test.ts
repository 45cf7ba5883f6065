import { expect, test } from 'vitest';
import {
  activeParameterCount,
  attentionParameters,
  parameterCount,
  parameterShape,
} from '../../../../lib/core/catalog/model/parameters';
import { readConfig } from '../../../../lib/core/catalog/model/read-config';

const SIZES = {
  num_hidden_layers: 2,
  hidden_size: 64,
  num_attention_heads: 8,
  intermediate_size: 128,
  vocab_size: 256,
};

const shapeOf = (config: Record<string, unknown>) => {
  const { shape, problems } = readConfig({ ...SIZES, ...config });
  if (!shape) throw new Error(JSON.stringify(problems));
  return shape;
};

// A key without a value says that the model has no such part; a missing key leaves what transformers takes.
test.each([
  ['gemma2', {}, { attention: 50, final: 30 }],
  ['gemma2', { attn_logit_softcapping: null }, { final: 30 }],
  ['gemma2', { final_logit_softcapping: null }, { attention: 50 }],
  ['gemma2', { attn_logit_softcapping: null, final_logit_softcapping: null }, undefined],
  ['gemma2', { attn_logit_softcapping: 20 }, { attention: 20, final: 30 }],
  ['vaultgemma', { attn_logit_softcapping: null }, { final: 30 }],
  ['gemma3_text', {}, undefined],
  ['nanochat', {}, { final: 15 }],
  ['nanochat', { final_logit_softcapping: null }, undefined],
])('caps of %s with %j', (model_type, config, caps) => {
  expect(shapeOf({ model_type, ...config }).logitSoftcap).toEqual(caps);
});

test.each([
  ['a number of experts', { model_type: 'deepseek_v3', n_routed_experts: 'many' }, 'n_routed_experts'],
  [
    'two numbers of experts',
    { model_type: 'glm4_moe', num_local_experts: 8, n_routed_experts: 16 },
    'num_local_experts',
  ],
  ['a size', { model_type: 'minicpm3', hidden_size: 'wide' }, 'hidden_size'],
  ['a bias', { model_type: 'youtu', attention_bias: 'yes' }, 'attention_bias'],
])('fails: %s that is wrong is named once', (_name, config, key) => {
  const moe = { num_experts_per_tok: 2, moe_intermediate_size: 32 };
  const { problems } = readConfig({ ...SIZES, ...(config.model_type !== 'minicpm3' && moe), ...config });
  expect(problems.filter((p) => p.key === key)).toHaveLength(1);
});

const counted = (config: Record<string, unknown>) => {
  const shape = parameterShape(shapeOf(config));
  return { all: parameterCount(shape), active: activeParameterCount(shape), kinds: shape.kinds?.map((k) => k.layers) };
};
const QWEN3_NEXT = {
  model_type: 'qwen3_next',
  hidden_size: 2048,
  intermediate_size: 5120,
  num_hidden_layers: 48,
  num_attention_heads: 16,
  num_key_value_heads: 2,
  vocab_size: 151936,
  moe_intermediate_size: 512,
  full_attention_interval: 4,
};

// https://huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct: 80B in all, 3B activated; the count is that of transformers' module.
test('Qwen3-Next has gated DeltaNet in three of four layers', () => {
  expect(counted(QWEN3_NEXT)).toEqual({ all: 79_674_391_296, active: 3_874_929_408, kinds: [36, 12] });
});

test('a layer that is named of another kind is refused', () => {
  const { problems } = readConfig({ ...QWEN3_NEXT, num_hidden_layers: 2, layer_types: ['full_attention', 'hyena'] });
  expect(problems.map(({ key, got }) => [key, got])).toEqual([['layer_types', 'hyena']]);
});

const KIMI_LINEAR = {
  model_type: 'kimi_linear',
  hidden_size: 2304,
  intermediate_size: 9216,
  num_hidden_layers: 27,
  num_attention_heads: 32,
  num_key_value_heads: 32,
  vocab_size: 163840,
  moe_intermediate_size: 1024,
  num_experts: 256,
  num_experts_per_token: 8,
  num_shared_experts: 1,
  q_lora_rank: null,
  linear_attn_config: {
    full_attn_layers: [4, 8, 12, 16, 20, 24, 27],
    kda_layers: [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26],
    head_dim: 128,
    num_heads: 32,
    short_conv_kernel_size: 4,
  },
};

// https://huggingface.co/moonshotai/Kimi-Linear-48B-A3B-Instruct: 48B in all, 3B activated; the count is that of transformers' module.
test('Kimi Linear has delta attention in three of four layers, latent attention in the others', () => {
  expect(counted(KIMI_LINEAR)).toEqual({ all: 49_122_675_072, active: 3_484_453_248, kinds: [19, 7, 1] });
  const { linear_attn_config: linear, ...rest } = KIMI_LINEAR;
  const named = Array.from({ length: 27 }, (_, i) =>
    linear.full_attn_layers.includes(i + 1) ? 'full_attention' : 'linear_attention',
  );
  expect(counted({ ...rest, layer_types: named })).toEqual(counted(KIMI_LINEAR));
  const twice = { ...linear, kda_layers: [...linear.kda_layers.slice(1), 4] };
  const { problems } = readConfig({ ...SIZES, ...KIMI_LINEAR, linear_attn_config: twice });
  expect(problems.map(({ key, must }) => [key, must])).toEqual([
    ['linear_attn_config', 'must name each of the 27 layers once'],
  ]);
});

test('attention of Nemotron-H has no biases, whatever the file says', () => {
  const counted = (attention_bias: boolean) =>
    parameterCount(
      parameterShape(shapeOf({ model_type: 'nemotron_h', layers_block_type: ['attention', 'mlp'], attention_bias })),
    );
  expect(counted(true)).toBe(counted(false));
});

test('a layer of Nemotron-H is one of a recurrence, attention, a feed-forward block or experts', () => {
  const nemotron = {
    model_type: 'nemotron_h',
    num_hidden_layers: 5,
    mamba_num_heads: 4,
    mamba_head_dim: 16,
    head_dim: 8,
  };
  const listed = { layers_block_type: ['mamba', 'moe', 'mamba', 'attention', 'mlp'], moe_intermediate_size: 32 };
  const found = counted({ ...nemotron, ...listed });
  expect(found).toEqual(counted({ ...nemotron, hybrid_override_pattern: 'MEM*-', moe_intermediate_size: 32 }));
  expect(found.kinds).toEqual([2, 1, 1, 1]);
  const shape = parameterShape(shapeOf({ ...nemotron, ...listed }));
  const [recurrent, ...others] = shape.kinds ?? [];
  expect(recurrent?.block).toMatchObject({ ffn: 0, experts: 1 });
  expect(others.map(({ block }) => [attentionParameters(block) > 0, block.ffn > 0, block.experts > 1])).toEqual([
    [false, true, true],
    [true, false, false],
    [false, true, false],
  ]);
  const wrong = readConfig({ ...SIZES, ...nemotron, num_hidden_layers: 2, hybrid_override_pattern: 'MX' });
  expect(wrong.problems.map(({ key, got }) => [key, got])).toEqual([['hybrid_override_pattern', 'X']]);
});

const LLAMA3 = { factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192 };
test.each([
  [{ rope_type: 'yarn' }, 'must have a factor that is a number'],
  [{ rope_type: 'linear', factor: 'eight' }, 'must have a factor that is a number'],
  [{ rope_type: 'linear', factor: 0.5 }, 'must have a factor that is at least 1'],
  [{ rope_type: 'yarn', factor: 4, truncate: 1 }, 'must have a truncate that is true or false'],
  [{ rope_type: 'llama3', ...LLAMA3, low_freq_factor: undefined }, 'must have a low_freq_factor that is a number'],
  [
    { rope_type: 'llama3', ...LLAMA3, high_freq_factor: 0.5 },
    'must have a high_freq_factor that is at least lowFreqFactor 1',
  ],
])('fails: positions cannot be computed with %o', (rope_scaling, must) => {
  const { problems } = readConfig({ ...SIZES, model_type: 'llama', rope_scaling });
  expect(problems).toMatchObject([{ key: 'rope_scaling', must }]);
});

// What is built for a job takes time and memory in proportion to the layers.
test.each([
  ['llama', { num_hidden_layers: 1000 }, []],
  ['llama', { num_hidden_layers: 1001 }, ['num_hidden_layers']],
  ['llama', { num_hidden_layers: Number.MAX_SAFE_INTEGER }, ['num_hidden_layers']],
  ['gpt2', { num_hidden_layers: undefined, n_layer: 1001 }, ['n_layer']],
  ['gemma4_text', { num_hidden_layers: 4_000_000_000 }, ['num_hidden_layers']],
  ['mimo_v2_flash', { num_hidden_layers: 4_000_000_000 }, ['num_hidden_layers']],
  ['nemotron-nas', { num_hidden_layers: 4_000_000_000 }, ['num_hidden_layers']],
  ['nemotron_h', { hybrid_override_pattern: 'M'.repeat(1000) }, []],
  [
    'nemotron_h',
    { hybrid_override_pattern: 'M'.repeat(1001), num_hidden_layers: 1001 },
    ['hybrid_override_pattern', 'num_hidden_layers'],
  ],
])('the layers of %s have an upper limit: %j', (model_type, config, refused) => {
  const { problems } = readConfig({ ...SIZES, model_type, ...config });
  const about = problems.filter(({ must }) => /^must (be|have) at most 1000\b/.test(must));
  expect(about.map(({ key }) => key)).toEqual(refused);
});
