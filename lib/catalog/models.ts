import { PRESETS, presetShape } from './model/presets';
import type { ModelShape, RopeScaling } from './model/shape';

const llama = (
  layers: number,
  hiddenSize: number,
  attentionHeads: number,
  kvHeads: number,
  ffnHiddenSize: number,
  vocabularySize: number,
) => ({
  layers,
  hiddenSize,
  attentionHeads,
  kvHeads,
  ffnHiddenSize,
  vocabularySize,
  gatedMlp: true,
  tiedEmbeddings: false,
});

/** Of Llama 3.1 (factor 8) and 3.2 (32), from the models' config.json. */
const llama3Scaling = (factor: number): RopeScaling => ({
  type: 'llama3',
  factor,
  lowFreqFactor: 1,
  highFreqFactor: 4,
  originalMaxPositionEmbeddings: 8192,
});

const llama31 = { ropeTheta: 500_000, ropeScaling: llama3Scaling(8) };
const llama32 = { tiedEmbeddings: true, ropeTheta: 500_000, ropeScaling: llama3Scaling(32) };

const gpt = (
  layers: number,
  hiddenSize: number,
  attentionHeads: number,
  vocabularySize: number,
  tiedEmbeddings = true,
) => ({
  layers,
  hiddenSize,
  attentionHeads,
  kvHeads: attentionHeads,
  ffnHiddenSize: 4 * hiddenSize,
  vocabularySize,
  gatedMlp: false,
  tiedEmbeddings,
});

/**
 * Published model shapes, from the models' own papers and configuration files:
 * Llama 2 https://arxiv.org/abs/2307.09288, Llama 3 https://arxiv.org/abs/2407.21783, GPT-2 / GPT-3 https://arxiv.org/abs/2005.14165,
 * Llama 3.1 and 3.2 https://huggingface.co/meta-llama (config.json of 3.1 8B, 70B, 405B and 3.2 1B, 3B; the 405B model exists as 3.1 only),
 * GPT-J https://huggingface.co/EleutherAI/gpt-j-6b, GPT-NeoX https://arxiv.org/abs/2204.06745, Mistral https://arxiv.org/abs/2310.06825 (the
 * preset is v0.3: its theta is that of the model card of v0.2, https://huggingface.co/mistralai/Mistral-7B-Instruct-v0.2, "Rope-theta = 1e6"),
 * Mixtral https://arxiv.org/abs/2401.04088; SMP v1 reference GPT-2 10B/30B/60B and the 65B GPT-NeoX and 175B Llama shapes of AWS's
 * guidance are given there by size only, the shapes here are the usual ones for that size. Retrieved 2026-11-20.
 */
const MODELS: Readonly<Record<string, ModelShape>> = {
  'gpt-tiny': { ...gpt(4, 128, 4, 257), tiedEmbeddings: true },
  'gpt2-1.5b': gpt(48, 1600, 25, 50257),
  'gpt2-10b': gpt(50, 4096, 32, 50257),
  'gpt2-30b': gpt(48, 7168, 64, 50257),
  'gpt2-60b': gpt(72, 8192, 64, 50257),
  'gpt3-175b': gpt(96, 12288, 96, 50257),
  'gpt-j-6b': gpt(28, 4096, 16, 50400, false),
  'gpt-neox-20b': gpt(44, 6144, 64, 50432, false),
  'gpt-neox-65b': gpt(80, 8192, 64, 50432, false),
  'llama2-7b': llama(32, 4096, 32, 32, 11008, 32000),
  'llama2-13b': llama(40, 5120, 40, 40, 13824, 32000),
  'llama2-70b': llama(80, 8192, 64, 8, 28672, 32000),
  'llama2-175b': llama(96, 12288, 96, 96, 33024, 32000),
  'llama3-8b': { ...llama(32, 4096, 32, 8, 14336, 128256), ropeTheta: 500_000 },
  'llama3-70b': { ...llama(80, 8192, 64, 8, 28672, 128256), ropeTheta: 500_000 },
  'llama3-405b': { ...llama(126, 16384, 128, 8, 53248, 128256), ...llama31 },
  'llama3.1-8b': { ...llama(32, 4096, 32, 8, 14336, 128256), ...llama31 },
  'llama3.1-70b': { ...llama(80, 8192, 64, 8, 28672, 128256), ...llama31 },
  'llama3.1-405b': { ...llama(126, 16384, 128, 8, 53248, 128256), ...llama31 },
  'llama3.2-1b': { ...llama(16, 2048, 32, 8, 8192, 128256), ...llama32 },
  'llama3.2-3b': { ...llama(28, 3072, 24, 8, 8192, 128256), headSize: 128, ...llama32 },
  'mistral-7b': { ...llama(32, 4096, 32, 8, 14336, 32768), ropeTheta: 1_000_000 },
  'mixtral-8x7b': { ...llama(32, 4096, 32, 8, 14336, 32000), experts: 8, expertsPerToken: 2, ropeTheta: 1_000_000 },
  'mixtral-8x22b': { ...llama(56, 6144, 48, 8, 16384, 32768), experts: 8, expertsPerToken: 2, ropeTheta: 1_000_000 },
};

/** Names of all presets: those above, and those that a config.json describes. */
export const MODEL_NAMES: readonly string[] = [...Object.keys(MODELS), ...Object.keys(PRESETS)];

/** The shape of a preset; undefined for any other name. */
export const findModel = (name: string): ModelShape | undefined =>
  Object.hasOwn(MODELS, name) ? MODELS[name] : presetShape(name);
