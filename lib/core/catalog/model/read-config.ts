import { type Config, ConfigFields, type ConfigProblem } from './config-fields';
import type { Families } from './families/decoder';
import { DEEPSEEK_FAMILIES } from './families/deepseek';
import { GEMMA_FAMILIES } from './families/gemma';
import { GLM_FAMILIES } from './families/glm';
import { GPT_FAMILIES } from './families/gpt';
import { GRANITE_FAMILIES } from './families/granite';
import { HYBRID_FAMILIES, STEP_FAMILIES } from './families/hybrids';
import { LLAMA_FAMILIES } from './families/llama';
import { NEMOTRON_FAMILIES } from './families/nemotron';
import { QWEN_FAMILIES } from './families/qwen';
import { RECURRENT_FAMILIES } from './families/recurrent';
import { SPARSE_FAMILIES } from './families/sparse';
import { headSizeOf } from './parameters';
import type { ModelShape } from './shape';

/**
 * Reader of config.json by `model_type`. Keys, defaults and counts are those of transformers 5.23
 * (https://github.com/huggingface/transformers, src/transformers/models, 2026-11-22); test/containers/test_model_families.py compares the
 * counts with transformers' modules.
 */
const FAMILIES: Families = {
  ...DEEPSEEK_FAMILIES,
  ...GEMMA_FAMILIES,
  ...GLM_FAMILIES,
  ...GPT_FAMILIES,
  ...GRANITE_FAMILIES,
  ...HYBRID_FAMILIES,
  ...LLAMA_FAMILIES,
  ...NEMOTRON_FAMILIES,
  ...QWEN_FAMILIES,
  ...RECURRENT_FAMILIES,
  ...SPARSE_FAMILIES,
  ...STEP_FAMILIES,
};

/** The shape described by a config.json, or the problems with it. */
export interface ReadConfig {
  shape?: ModelShape;
  problems: ConfigProblem[];
}

/** Reads the shape from the config.json of a Hugging Face model. Never throws: anything unsupported is returned as a problem. */
export const readConfig = (config: Config): ReadConfig => readFields(config, new ConfigFields(config));

/** The same, with access to the keys that the reader takes. */
export function readFields(config: Config, f: ConfigFields): ReadConfig {
  const family = Object.hasOwn(FAMILIES, f.modelType) ? FAMILIES[f.modelType] : undefined;
  if (!family) return { problems: [unknownFamily(config, f.modelType)] };
  const shape = family(f);
  const problems = [...f.problems, ...contradictions(shape), ...f.unknownKeys()];
  return problems.length > 0 ? { problems } : { shape, problems: [] };
}

function unknownFamily(config: Config, modelType: string): ConfigProblem {
  if (config.text_config !== undefined)
    return {
      key: 'text_config',
      must: `must be absent: ${modelType} is a multimodal model`,
      fix: `write its text_config to a separate file${beside(config)}`,
    };
  return {
    key: 'model_type',
    must: 'must be a decoder family that Slipway supports',
    got: config.model_type,
    fix: 'write model.architecture, or plan it by a preset of the same size',
  };
}

/** Whether embeddings are tied is stated beside text_config in some files: without it, the separate file is another model. */
function beside({ tie_word_embeddings: tied, text_config: inner }: Config): string {
  const isInside = typeof inner === 'object' && inner !== null && 'tie_word_embeddings' in inner;
  return tied === undefined || isInside ? '' : `, with tie_word_embeddings: ${tied}, which is beside it`;
}

function contradictions(m: ModelShape): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  if (m.attentionHeads % m.kvHeads !== 0)
    problems.push({
      key: 'num_key_value_heads',
      must: `must divide num_attention_heads ${m.attentionHeads}`,
      got: m.kvHeads,
      fix: 'correct one of the two',
    });
  if (
    (headSizeOf(m) * (m.partialRotary ?? 1)) % 2 !== 0 &&
    !m.family?.learnedPositions &&
    m.ropeTheta !== undefined &&
    !m.latentAttention
  )
    problems.push({
      key: 'head_dim',
      must: 'must be even for rotary positions',
      got: headSizeOf(m),
      fix: 'correct it',
    });
  return problems;
}
