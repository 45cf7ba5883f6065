import { llama3Scaling } from './model/config-rope';
import { PRESETS, presetShape } from './model/presets';
import type { ModelShape, RopeScaling } from './model/shape';

type Size = Pick<ModelShape, 'layers' | 'hiddenSize' | 'attentionHeads' | 'kvHeads' | 'ffnHiddenSize'>;

const llama = (size: Size, vocabularySize: number) => ({
  ...size,
  vocabularySize,
  gatedMlp: true,
  tiedEmbeddings: false,
});

const llama31 = { ropeTheta: 500_000, ropeScaling: llama3Scaling(8) };
const llama32 = { tiedEmbeddings: true, ropeTheta: 500_000, ropeScaling: llama3Scaling(32) };

/** Sizes shared by several models. */
const SIZE_8B: Size = { layers: 32, hiddenSize: 4096, attentionHeads: 32, kvHeads: 8, ffnHiddenSize: 14_336 };
const SIZE_70B: Size = { layers: 80, hiddenSize: 8192, attentionHeads: 64, kvHeads: 8, ffnHiddenSize: 28_672 };
const SIZE_405B: Size = { layers: 126, hiddenSize: 16_384, attentionHeads: 128, kvHeads: 8, ffnHiddenSize: 53_248 };

const gpt = (layers: number, hiddenSize: number, attentionHeads: number, vocabularySize: number) => ({
  layers,
  hiddenSize,
  attentionHeads,
  kvHeads: attentionHeads,
  ffnHiddenSize: 4 * hiddenSize,
  vocabularySize,
  gatedMlp: false,
  tiedEmbeddings: true,
});

/**
 * Published model shapes, from the models' own papers and configuration files:
 * Llama 2 https://arxiv.org/abs/2307.09288, Llama 3 https://arxiv.org/abs/2407.21783, GPT-2 / GPT-3 https://arxiv.org/abs/2005.14165,
 * Llama 3.1 and 3.2 https://huggingface.co/meta-llama (config.json of 3.1 8B, 70B, 405B and 3.2 1B, 3B; the 405B model exists as 3.1 only),
 * GPT-J https://huggingface.co/EleutherAI/gpt-j-6b, GPT-NeoX https://arxiv.org/abs/2204.06745, Mistral https://arxiv.org/abs/2310.06825 (the
 * preset is v0.3: its theta is that of the model card of v0.2, https://huggingface.co/mistralai/Mistral-7B-Instruct-v0.2, "Rope-theta = 1e6"),
 * Mixtral https://arxiv.org/abs/2401.04088; SMP v1 reference GPT-2 10B/30B/60B and the 65B GPT-NeoX and 175B Llama shapes of AWS's
 * guidance are only given by size there; the shapes here are the usual ones for that size. Retrieved 2026-11-20.
 */
const MODELS: Readonly<Record<string, ModelShape>> = {
  'gpt-tiny': gpt(4, 128, 4, 257),
  'gpt2-1.5b': gpt(48, 1600, 25, 50257),
  'gpt2-10b': gpt(50, 4096, 32, 50257),
  'gpt2-30b': gpt(48, 7168, 64, 50257),
  'gpt2-60b': gpt(72, 8192, 64, 50257),
  'gpt3-175b': gpt(96, 12288, 96, 50257),
  'gpt-j-6b': { ...gpt(28, 4096, 16, 50400), tiedEmbeddings: false },
  'gpt-neox-20b': { ...gpt(44, 6144, 64, 50432), tiedEmbeddings: false },
  'gpt-neox-65b': { ...gpt(80, 8192, 64, 50432), tiedEmbeddings: false },
  'llama2-7b': llama({ layers: 32, hiddenSize: 4096, attentionHeads: 32, kvHeads: 32, ffnHiddenSize: 11_008 }, 32_000),
  'llama2-13b': llama({ layers: 40, hiddenSize: 5120, attentionHeads: 40, kvHeads: 40, ffnHiddenSize: 13_824 }, 32_000),
  'llama2-70b': llama(SIZE_70B, 32_000),
  'llama2-175b': llama(
    { layers: 96, hiddenSize: 12_288, attentionHeads: 96, kvHeads: 96, ffnHiddenSize: 33_024 },
    32_000,
  ),
  'llama3-8b': { ...llama(SIZE_8B, 128_256), ropeTheta: 500_000 },
  'llama3-70b': { ...llama(SIZE_70B, 128_256), ropeTheta: 500_000 },
  'llama3-405b': { ...llama(SIZE_405B, 128_256), ...llama31 },
  'llama3.1-8b': { ...llama(SIZE_8B, 128_256), ...llama31 },
  'llama3.1-70b': { ...llama(SIZE_70B, 128_256), ...llama31 },
  'llama3.1-405b': { ...llama(SIZE_405B, 128_256), ...llama31 },
  'llama3.2-1b': {
    ...llama({ layers: 16, hiddenSize: 2048, attentionHeads: 32, kvHeads: 8, ffnHiddenSize: 8192 }, 128_256),
    ...llama32,
  },
  'llama3.2-3b': {
    ...llama({ layers: 28, hiddenSize: 3072, attentionHeads: 24, kvHeads: 8, ffnHiddenSize: 8192 }, 128_256),
    headSize: 128,
    ...llama32,
  },
  'mistral-7b': { ...llama(SIZE_8B, 32_768), ropeTheta: 1_000_000 },
  'mixtral-8x7b': { ...llama(SIZE_8B, 32_000), experts: 8, expertsPerToken: 2, ropeTheta: 1_000_000 },
  'mixtral-8x22b': {
    ...llama({ layers: 56, hiddenSize: 6144, attentionHeads: 48, kvHeads: 8, ffnHiddenSize: 16_384 }, 32_768),
    experts: 8,
    expertsPerToken: 2,
    ropeTheta: 1_000_000,
  },
};

/** Names of all presets: those above and those from config.json files. */
export const MODEL_NAMES: readonly string[] = [...Object.keys(MODELS), ...Object.keys(PRESETS)];

/** The shape of a preset; undefined for any other name. */
export const findModel = (name: string): ModelShape | undefined =>
  Object.hasOwn(MODELS, name) ? MODELS[name] : presetShape(name);

/**
 * `max_position_embeddings` of the published weights of presets, scaling included. Where a preset stands for several published models, the
 * longest: https://github.com/Lightning-AI/litgpt, litgpt/config.py (commit 26857050), which cites each config.json; the others from the
 * configurations in transformers 5.23 (gemma, gpt_oss, glm4_moe, minimax_m2, seed_oss, ernie4_5_moe, solar_open). Retrieved 2026-11-27.
 */
const POSITIONS: readonly (readonly [positions: number, presets: string])[] = [
  [4096, 'llama2-7b llama2-13b llama2-70b olmo2-7b olmo2-13b phi3-mini'],
  [
    8192,
    'llama3-8b llama3-70b gemma-2b gemma-7b gemma2-2b gemma2-9b gemma2-27b smollm2-135m smollm2-360m smollm2-1.7b',
  ],
  [16_384, 'phi4-14b'],
  [32_768, 'mistral-7b mixtral-8x7b mistral-large-123b qwen2.5-0.5b qwen2.5-3b'],
  [40_960, 'qwen3-0.6b qwen3-1.7b qwen3-4b qwen3-8b qwen3-14b qwen3-32b qwen3-30b-a3b qwen3-235b-a22b'],
  [65_536, 'mixtral-8x22b'],
  [
    131_072,
    'llama3-405b llama3.1-8b llama3.1-70b llama3.1-405b llama3.2-1b llama3.2-3b gemma3-4b gemma3-12b gemma3-27b',
  ],
  [131_072, 'qwen2.5-1.5b qwen2.5-7b qwen2.5-14b qwen2.5-32b qwen2.5-72b gpt-oss-20b gpt-oss-120b'],
  [131_072, 'glm4.5-air ernie4.5-21b-a3b solar-open-100b'],
  [196_608, 'minimax-m2'],
  [524_288, 'seed-oss-36b'],
];

/** The number of positions for which the weights of a preset were made, where it is known. */
export const POSITIONS_OF_PRESETS: ReadonlyMap<string, number> = new Map(
  POSITIONS.flatMap(([positions, names]) => names.split(' ').map((name) => [name, positions] as const)),
);

/** The number of positions with scaling, if it reaches further than `positions`, which a config.json may state without it. */
export function scaledPositions(positions: number, scaling: RopeScaling | undefined): number {
  if (!scaling) return positions;
  const original = scaling.type === 'linear' ? positions : scaling.originalMaxPositionEmbeddings;
  return Math.max(positions, original * scaling.factor);
}
