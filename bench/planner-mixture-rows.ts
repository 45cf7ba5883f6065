import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../lib/core/catalog/model/config-fields';
import { parameterShape } from '../lib/core/catalog/model/parameters';
import { readConfig } from '../lib/core/catalog/model/read-config';
import type { ModelShape } from '../lib/core/catalog/model/shape';
import { findModel } from '../lib/core/catalog/models';
import { parseYaml } from '../lib/core/config/reading/yaml-file';
import type { LayoutInput, PlanPrecision, Recompute } from '../lib/core/planner/layout';
import recipes from './mixture-recipes.json';
import type { Row } from './planner-rows';

/** Names of mixtures in published tables, and the presets or the published files that they are. */
const KNOWN: Readonly<Record<string, string>> = {
  'GPT OSS 120B': 'gpt-oss-120b',
  Qwen3_30B_a3B: 'qwen3-30b-a3b',
  Qwen3_235B_a22B: 'qwen3-235b-a22b',
  DeepSeekV3: 'deepseek-v3',
  Nemotron_3_Nano: 'nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16',
  Nemotron_3_Super: 'nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4',
  'nemotron-3-nano-30b': 'nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16',
  'nemotron-3-super-120b': 'nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4',
};

/** What NVIDIA's recipes switch on for rows whose tables do not say it. */
const RECIPES = recipes.rows as Readonly<Record<string, string>>;

const wordsOf = ({ id, parallel }: Row): string => RECIPES[id] ?? parallel.strategy ?? '';

/**
 * What the recipe of a row recomputes: norms and activation functions of all blocks; at most projections of attention; or the blocks with
 * experts, which are half of those of Nemotron 3 Nano.
 */
export function recomputeOfRecipe(row: Row): Recompute | undefined {
  const words = wordsOf(row);
  if (/elementwise-recomputed/.test(words)) return 'products';
  if (/blocks-kept/.test(words)) return 'none';
  return /blocks-recomputed/.test(words) ? 'block' : undefined;
}

/** Recipes of mixtures name Transformer Engine's loss (`cross_entropy_fusion_impl`), except those of GPT OSS. */
export const hasLossOfTransformerEngine = (row: Row): boolean =>
  isMixture(row) && /blocks-/.test(wordsOf(row)) && row.model.name !== 'GPT OSS 120B';

export const isMixture = (row: Row) => row.tags.includes('moe') || (row.parallel.ep ?? 1) > 1;

type OfMixture = Pick<
  LayoutInput,
  'model' | 'expert' | 'precision' | 'sendsOncePerNode' | 'overlapsExperts' | 'launchesGraphs'
>;

/** What a row of a mixture says beside what rows of dense models say; the reason why it is skipped where the catalog does not know it. */
export function mixtureOf(row: Row): OfMixture | string {
  if (/tokendrop/.test(row.model.name)) return 'experts that drop tokens are not planned';
  // The row says that no token is dropped, or that further tokens are predicted, behind the name.
  const name = row.model.name.replace(/ \(.*\)$/, '');
  const known = KNOWN[name] ?? name;
  const shape = findModel(known) ?? publishedShape(known);
  if (!shape?.experts) return `${row.model.name} is not a mixture of the catalog`;
  const further = mtpLayersOf(row.model.name);
  return {
    model: parameterShape({ ...shape, ...(further > 0 && { mtpLayers: further }) }),
    expert: row.parallel.ep ?? 1,
    precision: precisionOf(row.precision),
    overlapsExperts: /overlap_on|expert-overlap/.test(wordsOf(row)),
    launchesGraphs: /cuda-graphs/.test(wordsOf(row)),
    sendsOncePerNode: sendsOncePerNode(row),
  };
}

/**
 * Whether a row's tokens are sent by DeepEP or HybridEP. Where no recipe says it, NVIDIA's guide does for H100 and B200
 * (https://docs.nvidia.com/nemo/megatron-bridge, "MoE Dispatcher Selection Guide", 2026-11-23).
 */
const sendsOncePerNode = (row: Row): boolean =>
  RECIPES[row.id] === undefined && !/blocks-kept/.test(wordsOf(row))
    ? /Megatron-Bridge performance|AutoModel|MoE recipes/.test(row.source ?? '')
    : /hybridep|deepep/.test(wordsOf(row));

/**
 * How many further tokens a row's model predicts. The recipes of Nemotron 3 Super apply its one module twice (Megatron-Bridge v0.4.0 and v0.5.0,
 * recipes/nemotronh/nemotron_3_super.py: mtp_num_layers), AutoModel's does not.
 */
const mtpLayersOf = (name: string): number => (name === 'Nemotron_3_Super' ? 2 : /MTP/.test(name) ? 1 : 0);

/** The shape of a model whose config.json is among those of the tests. */
function publishedShape(name: string): ModelShape | undefined {
  const file = path.join(__dirname, '../test/fixtures/published-configs.jsonl');
  const line = readFileSync(file, 'utf8')
    .split('\n')
    .find((one) => one.startsWith(`{"model":"${name}"`));
  return line === undefined ? undefined : readConfig((parseYaml(line).data as { config: Config }).config).shape;
}

function precisionOf(precision: string | null): PlanPrecision {
  if (precision === 'mxfp8' || precision === 'nvfp4') return precision;
  return precision === 'fp8' ? 'fp8-blockwise' : 'bf16';
}
