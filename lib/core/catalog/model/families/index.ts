import type { Family } from './decoder';
import { axk1, deepseekV2, deepseekV3, glm4MoeLite, minicpm3, youtu } from './deepseek';
import { gemma, gemma2, gemma3, gemma4, vaultGemma } from './gemma';
import * as glm from './glm';
import * as gpt from './gpt';
import * as granite from './granite';
import { falconH1, flexOlmo, lfm2, lfm2Moe, mimoV2Flash, minimax, olmo, olmo2, olmo3, olmoe } from './hybrids';
import { kimiLinear } from './kimi';
import * as llama from './llama';
import { nemotronH, nemotronNas } from './nemotron';
import { mimo, qwen2, qwen2Moe, qwen3, qwen3Moe } from './qwen';
import { graniteHybrid, olmoHybrid, qwen3Next, qwen35, qwen35Moe } from './recurrent';
import { deepseekV4, deepseekV32, glmMoeDsa, minimaxM3 } from './sparse';
import { step35 } from './step';

/**
 * Reader of config.json by `model_type`. Keys, defaults and counts are those of transformers 5.23
 * (https://github.com/huggingface/transformers, src/transformers/models, 2026-11-22); test/containers/test_model_families.py compares the
 * counts with transformers' modules.
 */
export const FAMILIES: Readonly<Record<string, Family>> = {
  apertus: llama.apertus,
  arcee: llama.arcee,
  axk1,
  bitnet: llama.bitnet,
  bloom: gpt.bloom,
  codegen: gpt.gptj,
  cohere: gpt.cohere,
  cohere2: gpt.cohere2,
  cwm: llama.cwm,
  deepseek_v2: deepseekV2,
  deepseek_v3: deepseekV3,
  deepseek_v32: deepseekV32,
  deepseek_v4: deepseekV4,
  dots1: glm.dots1,
  ernie4_5: glm.ernie45,
  ernie4_5_moe: glm.ernie45Moe,
  exaone4: glm.exaone4,
  exaone_moe: glm.exaoneMoe,
  falcon: gpt.falcon,
  falcon_h1: falconH1,
  flex_olmo: flexOlmo,
  gemma,
  gemma2,
  gemma3_text: gemma3,
  gemma4_text: gemma4,
  glm: glm.glm,
  glm4: glm.glm4,
  glm4_moe: glm.glm4Moe,
  glm4_moe_lite: glm4MoeLite,
  glm_moe_dsa: glmMoeDsa,
  gpt2: gpt.gpt2,
  gpt_bigcode: gpt.gptBigcode,
  gpt_neox: gpt.gptNeox,
  gpt_oss: gpt.gptOss,
  gptj: gpt.gptj,
  granite: granite.granite,
  granite_swa: granite.graniteSwa,
  granitemoe: granite.graniteMoe,
  granitemoe_swa: granite.graniteMoeSwa,
  granitemoehybrid: graniteHybrid,
  granitemoeshared: granite.graniteMoeShared,
  helium: llama.helium,
  hunyuan_v1_dense: glm.hunyuan,
  hunyuan_v1_moe: glm.hunyuanMoe,
  hy_v3: glm.hyV3,
  hyperclovax: granite.hyperclovax,
  internlm3: llama.internlm3,
  iquestcoder: llama.iquestCoder,
  jais2: llama.jais2,
  // Kimi K2's files specify DeepseekV3ForCausalLM with their own model_type.
  kimi_k2: deepseekV3,
  kimi_linear: kimiLinear,
  lfm2,
  lfm2_moe: lfm2Moe,
  llama: llama.llama,
  llama4_text: llama.llama4,
  mellum: glm.mellum,
  mimo,
  mimo_v2_flash: mimoV2Flash,
  minicpm3,
  minimax,
  minimax_m2: llama.minimaxM2,
  minimax_m3: minimaxM3,
  minimax_m3_vl_text: minimaxM3,
  ministral: llama.mistral,
  ministral3: llama.ministral3,
  mistral: llama.mistral,
  mixtral: llama.mixtral,
  nanochat: llama.nanochat,
  nemotron: llama.nemotron,
  'nemotron-nas': nemotronNas,
  nemotron_h: nemotronH,
  olmo,
  olmo2,
  olmo3,
  olmo_hybrid: olmoHybrid,
  olmoe,
  opt: gpt.opt,
  phi: gpt.phi,
  phi3: gpt.phi3,
  phimoe: gpt.phimoe,
  qwen2,
  qwen2_moe: qwen2Moe,
  qwen3,
  qwen3_5_moe_text: qwen35Moe,
  qwen3_5_text: qwen35,
  qwen3_moe: qwen3Moe,
  qwen3_next: qwen3Next,
  // Text tokens of the multimodal models: all three positions of a token are equal.
  qwen3_vl_moe_text: qwen3Moe,
  qwen3_vl_text: qwen3,
  seed_oss: llama.seedOss,
  smollm3: llama.smollm3,
  solar_open: glm.solarOpen,
  stablelm: gpt.stablelm,
  starcoder2: gpt.starcoder2,
  step3p5: step35,
  vaultgemma: vaultGemma,
  youtu,
};
