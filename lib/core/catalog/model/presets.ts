import type { Config } from './config-fields';
import { readConfig } from './read-config';
import type { ModelShape } from './shape';

type Sizes = [layers: number, hidden: number, heads: number, kvHeads: number, ffn: number, vocabulary: number];

const sizes = ([layers, hidden, heads, kvHeads, ffn, vocabulary]: Sizes) => ({
  num_hidden_layers: layers,
  hidden_size: hidden,
  num_attention_heads: heads,
  num_key_value_heads: kvHeads,
  intermediate_size: ffn,
  vocab_size: vocabulary,
});

const of =
  (model_type: string, common: Config) =>
  (given: Sizes, more: Config = {}): Config => ({ model_type, ...common, ...sizes(given), ...more });

const tied = { tie_word_embeddings: true };
const epsilon5 = { rms_norm_eps: 1e-5 };
const qwen25 = of('qwen2', { rope_theta: 1_000_000 });
const qwen3 = of('qwen3', { rope_theta: 1_000_000, head_dim: 128 });
const qwen3Moe = of('qwen3_moe', {
  rope_theta: 1_000_000,
  head_dim: 128,
  num_experts: 128,
  num_experts_per_tok: 8,
  norm_topk_prob: true,
});
const gemma = of('gemma', { head_dim: 256 });
const gemma2 = of('gemma2', { head_dim: 256, query_pre_attn_scalar: 256, sliding_window: 4096 });
const gemma3 = of('gemma3_text', { head_dim: 256, query_pre_attn_scalar: 256, sliding_window: 1024 });
const gemma3Long = { rope_scaling: { rope_type: 'linear', factor: 8 } };
const olmo2 = of('olmo2', { rope_theta: 500_000, rms_norm_eps: 1e-6 });
const mistral = of('mistral', { ...epsilon5, sliding_window: null });
const smollm2 = of('llama', { ...tied, ...epsilon5 });
const phi3 = of('phi3', epsilon5);
const gptOss = of('gpt_oss', {
  head_dim: 64,
  num_experts_per_tok: 4,
  rope_scaling: {
    rope_type: 'yarn',
    factor: 32,
    beta_fast: 32,
    beta_slow: 1,
    truncate: false,
    original_max_position_embeddings: 4096,
  },
});
const llama4 = of('llama4_text', { head_dim: 128, num_experts_per_tok: 1, intermediate_size_mlp: 16384 });
const latent = { kv_lora_rank: 512, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128 };
const deepseekV3 = of('deepseek_v3', {
  ...latent,
  q_lora_rank: 1536,
  moe_intermediate_size: 2048,
  num_experts_per_tok: 8,
  n_shared_experts: 1,
  norm_topk_prob: true,
});
const deepseekV2 = of('deepseek_v2', {
  ...latent,
  num_experts_per_tok: 6,
  n_shared_experts: 2,
  first_k_dense_replace: 1,
});
/** mscale of DeepSeek-V2-Lite, from its config.json. */
const LITE_MSCALE = 707 / 1000;
const yarn = (factor: number, mscale: number) => ({
  rope_scaling: {
    type: 'yarn',
    factor,
    original_max_position_embeddings: 4096,
    beta_fast: 32,
    beta_slow: 1,
    mscale,
    mscale_all_dim: mscale,
  },
});
const v3 = {
  n_routed_experts: 256,
  n_group: 8,
  topk_group: 4,
  first_k_dense_replace: 3,
  routed_scaling_factor: 2.5,
  ...yarn(40, 1),
};

/**
 * Published models in addition to those in models.ts. Sizes are from the configurations in transformers 5.23 (defaults of gpt_oss, deepseek_v3,
 * glm4_moe, minimax_m2, llama4_text, smollm3, seed_oss, ernie4_5_moe, phi3, phimoe, qwen2_moe, starcoder2, solar_open) and, for Qwen, Gemma, OLMo 2,
 * Mistral, Phi 4 and SmolLM 2, from https://github.com/Lightning-AI/litgpt, litgpt/config.py, which cites each model's config.json. Retrieved
 * 2026-11-22; DeepSeek-V2 from https://github.com/deepseek-ai/DeepSeek-V3, inference/configs, GPT-OSS 20B, Kimi K2 and Llama 4 Maverick from the
 * launch scripts of https://github.com/THUDM/slime and Megatron-LM. A test compares the counts with the published sizes. Of each config.json, the
 * keys that determine the shape.
 */
export const PRESETS: Readonly<Record<string, Config>> = {
  'qwen2.5-0.5b': qwen25([24, 896, 14, 2, 4864, 151936], tied),
  'qwen2.5-1.5b': qwen25([28, 1536, 12, 2, 8960, 151936], tied),
  'qwen2.5-3b': qwen25([36, 2048, 16, 2, 11008, 151936], tied),
  'qwen2.5-7b': qwen25([28, 3584, 28, 4, 18944, 152064]),
  'qwen2.5-14b': qwen25([48, 5120, 40, 8, 13824, 152064], epsilon5),
  'qwen2.5-32b': qwen25([64, 5120, 40, 8, 27648, 152064], epsilon5),
  'qwen2.5-72b': qwen25([80, 8192, 64, 8, 29568, 152064], epsilon5),
  'qwen3-0.6b': qwen3([28, 1024, 16, 8, 3072, 151936], tied),
  'qwen3-1.7b': qwen3([28, 2048, 16, 8, 6144, 151936], tied),
  'qwen3-4b': qwen3([36, 2560, 32, 8, 9728, 151936], tied),
  'qwen3-8b': qwen3([36, 4096, 32, 8, 12288, 151936]),
  'qwen3-14b': qwen3([40, 5120, 40, 8, 17408, 151936]),
  'qwen3-32b': qwen3([64, 5120, 64, 8, 25600, 151936]),
  'qwen3-30b-a3b': qwen3Moe([48, 2048, 32, 4, 6144, 151936], { moe_intermediate_size: 768 }),
  'qwen3-235b-a22b': qwen3Moe([94, 4096, 64, 4, 12288, 151936], { moe_intermediate_size: 1536 }),
  'qwen1.5-moe-a2.7b': of('qwen2_moe', {
    rope_theta: 1_000_000,
    num_experts: 60,
    num_experts_per_tok: 4,
    moe_intermediate_size: 1408,
    shared_expert_intermediate_size: 5632,
  })([24, 2048, 16, 16, 5632, 151936]),
  'gemma-2b': gemma([18, 2048, 8, 1, 16384, 256000]),
  'gemma-7b': gemma([28, 3072, 16, 16, 24576, 256000]),
  'gemma2-2b': gemma2([26, 2304, 8, 4, 9216, 256000]),
  'gemma2-9b': gemma2([42, 3584, 16, 8, 14336, 256000]),
  'gemma2-27b': gemma2([46, 4608, 32, 16, 36864, 256000], { head_dim: 128, query_pre_attn_scalar: 144 }),
  'gemma3-1b': gemma3([26, 1152, 4, 1, 6912, 262144], { sliding_window: 512 }),
  'gemma3-4b': gemma3([34, 2560, 8, 4, 10240, 262208], gemma3Long),
  'gemma3-12b': gemma3([48, 3840, 16, 8, 15360, 262208], gemma3Long),
  'gemma3-27b': gemma3([62, 5376, 32, 16, 21504, 262208], {
    ...gemma3Long,
    head_dim: 128,
    query_pre_attn_scalar: 168,
  }),
  'olmo2-7b': olmo2([32, 4096, 32, 32, 11008, 100352]),
  'olmo2-13b': olmo2([40, 5120, 40, 40, 13824, 100352]),
  'mistral-small-24b': mistral([40, 5120, 32, 8, 32768, 131072], { head_dim: 128, rope_theta: 100_000_000 }),
  'mistral-large-123b': mistral([88, 12288, 96, 8, 28672, 32768], { rope_theta: 1_000_000 }),
  'phi3-mini': phi3([32, 3072, 32, 32, 8192, 32064], { sliding_window: 2047 }),
  'phi4-mini': phi3([32, 3072, 24, 8, 8192, 200064], { ...tied, partial_rotary_factor: 0.75 }),
  'phi4-14b': phi3([40, 5120, 40, 10, 17920, 100352], { rope_theta: 250_000 }),
  'phi3.5-moe': of('phimoe', {
    num_local_experts: 16,
    num_experts_per_tok: 2,
    attention_bias: true,
    lm_head_bias: true,
  })([32, 4096, 32, 8, 6400, 32064]),
  'smollm2-135m': smollm2([30, 576, 9, 3, 1536, 49152], { rope_theta: 100_000 }),
  'smollm2-360m': smollm2([32, 960, 15, 5, 2560, 49152], { rope_theta: 100_000 }),
  'smollm2-1.7b': smollm2([24, 2048, 32, 32, 8192, 49152], { rope_theta: 130_000 }),
  'smollm3-3b': of('smollm3', { ...tied, rope_theta: 5_000_000 })([36, 2048, 16, 4, 11008, 128256]),
  'starcoder2-3b': of('starcoder2', { use_bias: true })([30, 3072, 24, 2, 12288, 49152]),
  'gpt-oss-20b': gptOss([24, 2880, 64, 8, 2880, 201088], { num_local_experts: 32 }),
  'gpt-oss-120b': gptOss([36, 2880, 64, 8, 2880, 201088], { num_local_experts: 128 }),
  'deepseek-v2-lite': deepseekV2([27, 2048, 16, 16, 10944, 102400], {
    q_lora_rank: null,
    n_routed_experts: 64,
    moe_intermediate_size: 1408,
    ...yarn(40, LITE_MSCALE),
  }),
  'deepseek-v2': deepseekV2([60, 5120, 128, 128, 12288, 102400], {
    q_lora_rank: 1536,
    n_routed_experts: 160,
    moe_intermediate_size: 1536,
    topk_method: 'group_limited_greedy',
    n_group: 8,
    topk_group: 3,
    routed_scaling_factor: 16,
    ...yarn(40, 1),
  }),
  'deepseek-v3': deepseekV3([61, 7168, 128, 128, 18432, 129280], v3),
  'deepseek-r1': deepseekV3([61, 7168, 128, 128, 18432, 129280], v3),
  'kimi-k2': deepseekV3([61, 7168, 64, 64, 18432, 163840], {
    n_routed_experts: 384,
    first_k_dense_replace: 1,
    n_group: 1,
    topk_group: 1,
    routed_scaling_factor: 2.827,
    rope_theta: 50_000,
  }),
  'llama4-scout': llama4([48, 5120, 40, 8, 8192, 202048], { num_local_experts: 16 }),
  'llama4-maverick': llama4([48, 5120, 40, 8, 8192, 202048], { num_local_experts: 128, interleave_moe_layer_step: 2 }),
  'glm4.5-air': of('glm4_moe', {
    head_dim: 128,
    rope_theta: 1_000_000,
    attention_bias: true,
    moe_intermediate_size: 1408,
    n_routed_experts: 128,
    num_experts_per_tok: 8,
    ...epsilon5,
  })([46, 4096, 96, 8, 10944, 151552]),
  'minimax-m2': of('minimax_m2', { head_dim: 128, rotary_dim: 64, num_local_experts: 256, num_experts_per_tok: 8 })([
    62, 3072, 48, 8, 1536, 200064,
  ]),
  'seed-oss-36b': of('seed_oss', { head_dim: 128, rope_theta: 10_000_000 })([64, 5120, 80, 8, 27648, 155136]),
  'ernie4.5-21b-a3b': of('ernie4_5_moe', { moe_intermediate_size: 1536, moe_num_experts: 64, moe_k: 6 })([
    28, 2560, 20, 4, 12288, 103424,
  ]),
  'solar-open-100b': of('solar_open', {
    head_dim: 128,
    moe_intermediate_size: 1280,
    n_routed_experts: 128,
    num_experts_per_tok: 8,
  })([48, 4096, 64, 8, 1280, 196608]),
};

const shapes = new Map<string, ModelShape>();

/** The shape of a preset; its config.json is read on first use rather than at program start. */
export function presetShape(name: string): ModelShape | undefined {
  const config = Object.hasOwn(PRESETS, name) ? PRESETS[name] : undefined;
  if (!config) return undefined;
  const shape = shapes.get(name) ?? requireShape(name, config);
  shapes.set(name, shape);
  return shape;
}

function requireShape(name: string, config: Config): ModelShape {
  const { shape, problems } = readConfig(config);
  if (!shape) throw new Error(`preset ${name}: ${JSON.stringify(problems)}`);
  return shape;
}
