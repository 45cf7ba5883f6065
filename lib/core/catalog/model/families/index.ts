import type { Families } from './decoder';
import { DEEPSEEK_FAMILIES } from './deepseek';
import { GEMMA_FAMILIES } from './gemma';
import { GLM_FAMILIES } from './glm';
import { GPT_FAMILIES } from './gpt';
import { GRANITE_FAMILIES } from './granite';
import { HYBRID_FAMILIES } from './hybrids';
import { LLAMA_FAMILIES } from './llama';
import { NEMOTRON_FAMILIES } from './nemotron';
import { QWEN_FAMILIES } from './qwen';
import { RECURRENT_FAMILIES } from './recurrent';
import { SPARSE_FAMILIES } from './sparse';
import { STEP_FAMILIES } from './step';

/**
 * Reader of config.json by `model_type`. Keys, defaults and counts are those of transformers 5.23
 * (https://github.com/huggingface/transformers, src/transformers/models, 2026-11-22); test/containers/test_model_families.py compares the
 * counts with transformers' modules.
 */
export const FAMILIES: Families = {
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
