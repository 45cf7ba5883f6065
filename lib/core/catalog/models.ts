import { llama3Scaling } from './model/llama3-scaling';
import { PRESETS, presetShape } from './model/presets';
import type { ModelShape } from './model/shape';

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
