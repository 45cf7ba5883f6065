import { expect, test } from 'vitest';
import { readConfig } from '../../../lib/catalog/model/read-config';

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
  ['two numbers of experts', { model_type: 'glm4_moe', num_experts: 8, n_routed_experts: 16 }, 'n_routed_experts'],
  ['a size', { model_type: 'minicpm3', hidden_size: 'wide' }, 'hidden_size'],
  ['a bias', { model_type: 'youtu', attention_bias: 'yes' }, 'attention_bias'],
])('fails: %s that is wrong is named once', (_name, config, key) => {
  const moe = { num_experts_per_tok: 2, moe_intermediate_size: 32 };
  const { problems } = readConfig({ ...SIZES, ...(config.model_type !== 'minicpm3' && moe), ...config });
  expect(problems.filter((p) => p.key === key)).toHaveLength(1);
});
