// One test for each row of models.md that is about the form of a config.json: the smallest file with the same symptom.
import { expect, test } from 'vitest';
import { readConfig } from '../../lib/core/catalog/model/read-config';

const SIZES = {
  num_hidden_layers: 8,
  hidden_size: 256,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  intermediate_size: 512,
  vocab_size: 1024,
  max_position_embeddings: 65_536,
};
const shapeOf = (config: object) => readConfig({ ...SIZES, ...config }).shape;
const yarn = { rope_type: 'yarn', factor: 8, original_max_position_embeddings: 8192, attention_factor: 1.2 };
const linear = { rope_type: 'linear', factor: 8 };
const layers = (full: object, sliding: object) => ({
  rope_parameters: { full_attention: full, sliding_attention: sliding },
});
const plain = { rope_type: 'default', rope_theta: 500_000 };

test.each<[source: string, config: object, expected: object]>([
  [
    'vllm-project/vllm#43419: scaling of OLMo 3 is that of layers without a window',
    { model_type: 'olmo3', rope_theta: 500_000, rope_scaling: yarn },
    { ropeTheta: 500_000, ropeScaling: { type: 'yarn' }, family: { localRopeTheta: 500_000 } },
  ],
  [
    'huggingface/transformers#45945: OLMo 3 as transformers saves it',
    { model_type: 'olmo3', ...layers({ ...yarn, rope_theta: 500_000 }, plain) },
    { ropeScaling: { type: 'yarn' }, family: { localRopeTheta: 500_000 } },
  ],
  [
    'huggingface/transformers#45945: a file whose windows are scaled too is not trained as one whose are not',
    { model_type: 'olmo3', ...layers({ ...yarn, rope_theta: 500_000 }, { ...yarn, rope_theta: 500_000 }) },
    { family: { untrained: ['rope type yarn of windowed layers'] } },
  ],
  [
    'huggingface/transformers#41934: rope_scaling of Gemma 3 is that of layers without a window',
    { model_type: 'gemma3_text', rope_scaling: linear },
    { ropeTheta: 1_000_000, ropeScaling: { type: 'linear', factor: 8 }, family: { localRopeTheta: 10_000 } },
  ],
  [
    'sgl-project/sglang#26013: Gemma 3 with sections per layer type and no scaling',
    { model_type: 'gemma3_text', ...layers({ rope_type: 'default', rope_theta: 1_000_000 }, { rope_theta: 10_000 }) },
    { ropeTheta: 1_000_000, family: { localRopeTheta: 10_000 } },
  ],
  [
    'huggingface/transformers#45643: settings of positions by other names than layer types',
    {
      model_type: 'deepseek_v4',
      moe_intermediate_size: SIZES.intermediate_size,
      rope_parameters: { main: plain, compress: plain },
    },
    { family: { modelType: 'deepseek_v4', streams: 4 } },
  ],
  [
    'huggingface/transformers#48392: settings of positions for a layer type that a short model does not have',
    {
      model_type: 'gemma3_text',
      num_hidden_layers: 2,
      layer_types: ['sliding_attention', 'sliding_attention'],
      ...layers({ rope_type: 'default', rope_theta: 1_000_000 }, { rope_type: 'default', rope_theta: 10_000 }),
    },
    { slidingWindow: { size: 4096, pattern: 'all' }, family: { localRopeTheta: 10_000 } },
  ],
  [
    'ddalcu/mlx-serve#46: Gemma 3 4B names no heads',
    { model_type: 'gemma3_text', num_attention_heads: undefined, num_key_value_heads: undefined },
    { attentionHeads: 8, kvHeads: 4, headSize: 256 },
  ],
  ['marin-community/marin#2098: Qwen 3 without head_dim', { model_type: 'qwen3' }, { headSize: 128 }],
  [
    'QwenLM/Qwen3#687: Qwen2-MoE does not normalise the weights of experts',
    { model_type: 'qwen2_moe', moe_intermediate_size: 128, norm_topk_prob: false },
    { routing: { normalise: false } },
  ],
  [
    'leonickson1/Swiftlet#6: Qwen 3.5 MoE normalises without norm_topk_prob',
    { model_type: 'qwen3_5_moe_text', intermediate_size: null, moe_intermediate_size: 128 },
    { routing: { normalise: true } },
  ],
  [
    'paiml/entrenar#262: queries that are larger than the hidden size',
    { model_type: 'qwen3', hidden_size: 2560, num_attention_heads: 32, head_dim: 128 },
    { headSize: 128, attentionHeads: 32 },
  ],
  [
    'a sibling of NVIDIA-NeMo/Megatron-Bridge#4800: Mistral without sliding_window',
    { model_type: 'mistral' },
    { slidingWindow: { size: 4096, pattern: 'all' } },
  ],
  [
    'SafeAILab/EAGLE#223: heads that are not hidden_size / num_attention_heads',
    { model_type: 'qwen3', head_dim: 128 },
    { headSize: 128 },
  ],
  ['HabanaAI/vllm-fork#1294: head_dim is null', { model_type: 'mistral', head_dim: null }, { headSize: 64 }],
  [
    'huggingface/transformers#37134: whole numbers in the scaling of DeepSeek-V3',
    { model_type: 'llama', rope_scaling: { type: 'yarn', factor: 40, beta_fast: 32, beta_slow: 1 } },
    { ropeScaling: { type: 'yarn', factor: 40 } },
  ],
  [
    'ml-explore/mlx-lm#1698: GLM without partial_rotary_factor turns half of a head',
    { model_type: 'glm' },
    { partialRotary: 0.5 },
  ],
  [
    'InternLM/lmdeploy#3861: partial_rotary_factor without a section',
    { model_type: 'glm4', partial_rotary_factor: 0.25 },
    { partialRotary: 0.25 },
  ],
  [
    'huggingface/transformers#48486: rotary_dim of MiniMax M2',
    { model_type: 'minimax_m2', head_dim: 128, rotary_dim: 64, num_local_experts: 8, num_experts_per_tok: 2 },
    { partialRotary: 0.5 },
  ],
  [
    'sgl-project/sglang#22739: rope_parameters without rope_theta, which is beside it',
    { model_type: 'qwen3', rope_theta: 1_000_000, rope_parameters: yarn },
    { ropeTheta: 1_000_000, ropeScaling: { type: 'yarn', factor: 8, originalMaxPositionEmbeddings: 8192 } },
  ],
  [
    'huggingface/transformers#32167: scaling with a type and a factor alone',
    { model_type: 'llama', rope_scaling: { type: 'linear', factor: 8 } },
    { ropeScaling: { type: 'linear', factor: 8 } },
  ],
  [
    'ml-explore/mlx-lm#1563: rope_theta within rope_parameters alone',
    { model_type: 'qwen3', rope_parameters: { rope_theta: 1_000_000, rope_type: 'default' } },
    { ropeTheta: 1_000_000 },
  ],
  [
    'ModelTC/LightLLM#344: rope_scaling is null',
    { model_type: 'llama', rope_scaling: null, rope_theta: 500_000 },
    { ropeTheta: 500_000 },
  ],
  [
    'stepfun-ai/Step-Audio-EditX#38: without tie_word_embeddings, the family decides',
    { model_type: 'llama' },
    { tiedEmbeddings: false },
  ],
  [
    'NVIDIA-NeMo/Automodel#1916: Step 3.5 lists types of its prediction modules too',
    {
      model_type: 'step3p5',
      num_nextn_predict_layers: 3,
      num_attention_groups: 2,
      layer_types: [...Array(11).keys()].map((layer) => (layer % 4 === 0 ? 'full_attention' : 'sliding_attention')),
      sliding_window: 512,
      moe_intermediate_size: 64,
      attention_other_setting: { num_attention_heads: 8, num_attention_groups: 2 },
    },
    { layers: 8, slidingWindow: { size: 512, pattern: [1, 2, 3, 5, 6, 7] }, denseLayers: 3, kvHeads: 2 },
  ],
  [
    'NVIDIA-NeMo/Automodel#2652: YaRN without the length before scaling',
    { model_type: 'llama', rope_scaling: { rope_type: 'yarn', factor: 2 } },
    { ropeScaling: { type: 'yarn', factor: 2, originalMaxPositionEmbeddings: 65_536 } },
  ],
  [
    'ROCm/aiter#4742: latent attention with a section of positions that are not scaled',
    {
      model_type: 'glm4_moe_lite',
      moe_intermediate_size: 64,
      rope_scaling: { rope_theta: 1_000_000, partial_rotary_factor: 1, rope_type: 'default' },
    },
    { ropeTheta: 1_000_000, latentAttention: { ropeHeadSize: 64 } },
  ],
  [
    'MiniMax-AI/MiniMax-01#29: heads that together are larger than the hidden size',
    { model_type: 'minimax', num_attention_heads: 4, head_dim: 128 },
    { hiddenSize: 256, headSize: 128 },
  ],
  [
    'EleutherAI/gpt-neox#1434: Qwen2-MoE with a size of heads',
    { model_type: 'qwen2_moe', head_dim: 128, moe_intermediate_size: 64 },
    { headSize: 128 },
  ],
  [
    'vllm-project/vllm#21927: Gemma 3 with neither sliding_window_pattern nor layer_types',
    { model_type: 'gemma3_text', sliding_window: 1024 },
    { slidingWindow: { size: 1024, pattern: [0, 1, 2, 3, 4, 6, 7] } },
  ],
  [
    'huggingface/trl#7069: every second layer has experts, except the ones that are listed',
    { model_type: 'qwen2_moe', moe_intermediate_size: 64, decoder_sparse_step: 2, mlp_only_layers: [1] },
    { denseLayers: [0, 1, 2, 4, 6], experts: 60, expertsPerToken: 4 },
  ],
  [
    'lablup/mlxcel#763: MiniMax-M3 states zeros and ones for layers with experts and with an indexer',
    {
      model_type: 'minimax_m3',
      hidden_act: 'swigluoai',
      intermediate_size: 64,
      moe_layer_freq: [0, 0, 0, 1, 1, 1, 1, 1],
      sparse_attention_config: { sparse_attention_freq: [0, 0, 0, 1, 1, 1, 1, 1], sparse_topk_blocks: 4 },
    },
    { denseLayers: 3, ffnHiddenSize: 12_288, expertFfnHiddenSize: 64, family: { activation: 'clamped-swiglu' } },
  ],
])('%s', (_source, config, expected) => {
  expect(shapeOf(config)).toMatchObject(expected);
});

test.each<[source: string, config: object]>([
  [
    'huggingface/transformers#38002: a window that is switched off',
    { model_type: 'qwen2', sliding_window: 4096, use_sliding_window: false, max_window_layers: 0 },
  ],
  [
    'Blackwellboy/model-serving-minefield#107: a window that nothing switches on',
    { model_type: 'qwen3', sliding_window: 2048 },
  ],
])('%s is no window', (_source, config) => {
  const shape = shapeOf(config);
  expect(shape).toBeDefined();
  expect(shape?.slidingWindow).toBeUndefined();
});

test.each<[source: string, config: object, key: string, fix: RegExp]>([
  [
    'deepseek-ai/DeepSeek-R1#684: attn_factor, which no library reads',
    { model_type: 'qwen3', rope_scaling: { rope_type: 'yarn', factor: 4, attn_factor: 0.878 } },
    'rope_scaling',
    /remove the other key/,
  ],
  [
    'peremartra/optipfair#20: layers were removed and layer_types was not cut',
    { model_type: 'gemma3_text', layer_types: Array(10).fill('full_attention') },
    'layer_types',
    /correct the list/,
  ],
  [
    'vllm-project/vllm#51063: embeddings are tied beside text_config alone',
    { model_type: 'mistral3', tie_word_embeddings: true, text_config: { ...SIZES, model_type: 'mistral' } },
    'text_config',
    /with tie_word_embeddings: true, which is beside it$/,
  ],
  [
    'vllm-project/vllm#33521: a window for each of several layers',
    { model_type: 'mistral', sliding_window: [null, 4096] },
    'sliding_window',
    /copy it from the model/,
  ],
  [
    'NVIDIA/TensorRT-LLM#18042: a pattern of other length than the number of layers',
    { model_type: 'nemotron_h', hybrid_override_pattern: 'M*-M*-' },
    'num_hidden_layers',
    /correct one of the two/,
  ],
  [
    'allenai/OLMo-core#555: heads of three elements, which positions cannot turn',
    { model_type: 'llama', hidden_size: 12, num_attention_heads: 4 },
    'head_dim',
    /correct it/,
  ],
  [
    'deepspeedai/DeepSpeed#8345: EXAONE 4 with settings of positions per layer type',
    { model_type: 'exaone4', sliding_window: 4096, sliding_window_pattern: 'LLLG', ...layers(plain, plain) },
    'rope_parameters',
    /without names of layer types/,
  ],
  [
    'a family with one setting for all layers has none per layer type',
    { model_type: 'llama', ...layers(plain, plain) },
    'rope_parameters',
    /without names of layer types/,
  ],
])('fails: %s', (_source, config, key, fix) => {
  expect(readConfig({ ...SIZES, ...config }).problems).toMatchObject([{ key, fix: expect.stringMatching(fix) }]);
});
