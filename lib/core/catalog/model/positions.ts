import type { RopeScaling } from './shape';

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
