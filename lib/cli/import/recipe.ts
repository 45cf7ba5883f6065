import { leavesOf } from './differences';
import { type Draft, type Drafted, filled, runName } from './draft';
import { isObject } from './read-request';

type Recipe = Record<string, unknown>;

/**
 * Whether a document is a recipe of https://github.com/aws/sagemaker-hyperpod-recipes (recipes_collection, read 2026-11-22): sections
 * `run`, `trainer` and `model`, or `training_config` in newer ones. Hydra's `${...}` is not resolved and is listed.
 */
export const isRecipe = (document: unknown): document is Recipe =>
  isObject(document) && isObject(document.run) && (isObject(document.trainer) || isObject(document.training_config));

/** One option of a run file and its paths in a recipe, in order of precedence; `read` converts the value, undefined rejects it. */
interface Row {
  option: string;
  places: readonly string[];
  read(value: unknown): unknown;
}

const count = (value: unknown) => (Number.isInteger(value) && Number(value) > 0 ? value : undefined);
const text = (value: unknown) => (typeof value === 'string' && !value.includes('${') ? value : undefined);
const flag = (value: unknown) => (typeof value === 'boolean' ? value : undefined);
const precision = (value: unknown) =>
  ({
    bf16: 'bf16',
    'bf16-mixed': 'bf16',
    bfloat16: 'bf16',
    fp16: 'fp16',
    '16-mixed': 'fp16',
    '32': 'fp32',
    fp32: 'fp32',
  })[String(value)];
const checkpointing = (value: unknown) =>
  value === true || value === 'full'
    ? 'full'
    : value === false
      ? 'none'
      : value === 'selective'
        ? 'selective'
        : undefined;

/** Parses Slurm's `6-00:00:00` to seconds. */
function seconds(value: unknown): number | undefined {
  const [, days = 0, hours, minutes, rest] = /^(?:(\d+)-)?(\d+):(\d+):(\d+)$/.exec(String(value)) ?? [];
  if (hours === undefined) return undefined;
  return ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(rest);
}

const ROWS: readonly Row[] = [
  { option: 'name', places: ['run.name'], read: (value) => (text(value) ? runName(String(value)) : undefined) },
  { option: 'compute.instanceCount', places: ['trainer.num_nodes'], read: count },
  { option: 'limits.maxRuntimeSeconds', places: ['run.time_limit'], read: seconds },
  { option: 'training.steps', places: ['trainer.max_steps'], read: count },
  { option: 'training.precision', places: ['trainer.precision', 'plugins.precision'], read: precision },
  {
    option: 'training.sequenceLength',
    places: ['model.max_context_width', 'data.seq_length', 'model.data.seq_length', 'model.encoder_seq_length'],
    read: count,
  },
  {
    option: 'training.microBatchSize',
    places: ['model.train_batch_size', 'data.micro_batch_size', 'model.micro_batch_size'],
    read: count,
  },
  { option: 'training.globalBatchSize', places: ['data.global_batch_size', 'model.global_batch_size'], read: count },
  { option: 'training.seed', places: ['model.seed'], read: (value) => (Number.isInteger(value) ? value : undefined) },
  { option: 'training.activationCheckpointing', places: ['model.activation_checkpointing'], read: checkpointing },
  { option: 'training.activationOffload', places: ['model.offload_activations'], read: flag },
  { option: 'training.lora.rank', places: ['model.peft.rank'], read: count },
  { option: 'training.lora.alpha', places: ['model.peft.alpha'], read: count },
  { option: 'model.architecture.layers', places: ['model.num_hidden_layers', 'model.num_layers'], read: count },
  { option: 'model.architecture.hiddenSize', places: ['model.hidden_size'], read: count },
  { option: 'model.architecture.attentionHeads', places: ['model.num_attention_heads'], read: count },
  {
    option: 'model.architecture.kvHeads',
    places: ['model.num_key_value_heads', 'model.num_query_groups'],
    read: count,
  },
  {
    option: 'model.architecture.ffnHiddenSize',
    places: ['model.intermediate_size', 'model.ffn_hidden_size'],
    read: count,
  },
  { option: 'model.architecture.vocabularySize', places: ['model.vocab_size', 'model.config.vocab_size'], read: count },
  { option: 'model.architecture.ropeTheta', places: ['model.rope_theta'], read: count },
  { option: 'checkpoints.keep', places: ['exp_manager.checkpoint_callback_params.save_top_k'], read: count },
  {
    option: 'distribution.parameters.tensor_parallel_degree',
    places: ['model.tensor_model_parallel_degree'],
    read: count,
  },
  { option: 'distribution.parameters.context_parallel_degree', places: ['model.context_parallel_degree'], read: count },
  {
    option: 'distribution.parameters.expert_parallel_degree',
    places: ['model.expert_model_parallel_degree'],
    read: count,
  },
  { option: 'distribution.parameters.hybrid_shard_degree', places: ['model.shard_degree'], read: count },
  {
    option: 'distribution.parameters.activation_loading_horizon',
    places: ['model.activation_loading_horizon'],
    read: count,
  },
  {
    option: 'distribution.parameters.tensor-model-parallel-size',
    places: ['strategy.tensor_model_parallel_size', 'model.tensor_model_parallel_size'],
    read: count,
  },
  {
    option: 'distribution.parameters.pipeline-model-parallel-size',
    places: ['strategy.pipeline_model_parallel_size', 'model.pipeline_model_parallel_size'],
    read: count,
  },
  { option: 'distribution.parameters.context-parallel-size', places: ['strategy.context_parallel_size'], read: count },
  { option: 'distribution.parameters.sequence-parallel', places: ['strategy.sequence_parallel'], read: flag },
];

const WHY_REST = "a setting of the recipe's program; pass it in code.arguments if the program needs it";

/** The value that one row of the table found in a recipe. */
interface Carried {
  option: string;
  place: string;
  value: unknown;
}

/** The run file for a recipe: model shape, batch, cluster and parallel degrees; the program remains the recipe's. */
export function draftOfRecipe(document: Recipe): Drafted {
  const leaves = leavesOf(document);
  const found = ROWS.flatMap(({ option, places, read }): Carried[] => {
    const place = places.find((field) => leaves.has(field) && read(leaves.get(field)) !== undefined);
    return place === undefined ? [] : [{ option, place, value: read(leaves.get(place)) }];
  });
  const library = libraryOf(document, found);
  const carried = found.filter(({ option }) => isUsable(option, library, found));
  const draft: Draft = { name: 'recipe', code: { source: './src', entryPoint: 'train.py' } };
  for (const { option, value } of carried) put(draft, option.split('.'), value);
  const known = new Set([...carried.map(({ place }) => place), ...GIVEN_BY_TYPE]);
  const rest = [...leaves].filter(([field, value]) => !known.has(field) && value !== null);
  const remarks = [
    ...instanceTypeRemarks(document),
    ...rest.map(([field, value]) => ({ field, value, why: WHY_REST })),
  ];
  return { draft: complete(draft, library, instanceTypeOf(document)), remarks };
}

/** Determined by the instance type, or used to determine the library. */
const GIVEN_BY_TYPE = [
  'instance_type',
  'instance_types',
  'trainer.devices',
  'trainer.accelerator',
  'use_smp_model',
  'model.use_smp_model',
];

function libraryOf(recipe: Recipe, found: readonly Carried[]): string {
  if (recipe.use_smp_model === true || (isObject(recipe.model) && recipe.model.use_smp_model === true)) return 'smp-v2';
  return found.some(({ option }) => /-model-parallel-size$/.test(option)) ? 'megatron' : 'custom';
}

const NEEDED_SHAPE = ['layers', 'hiddenSize', 'attentionHeads', 'ffnHiddenSize', 'vocabularySize'];

/** Drops parameters with the names of another library, and an incomplete model shape. */
function isUsable(option: string, library: string, found: readonly Carried[]): boolean {
  const parameter = /^distribution\.parameters\.(.+)$/.exec(option)?.[1];
  if (parameter !== undefined) return library === (parameter.includes('-') ? 'megatron' : 'smp-v2');
  if (!option.startsWith('model.architecture.')) return true;
  return NEEDED_SHAPE.every((name) => found.some((other) => other.option === `model.architecture.${name}`));
}

function instanceTypesOf(recipe: Recipe): string[] {
  const given = [recipe.instance_type, ...(Array.isArray(recipe.instance_types) ? recipe.instance_types : [])];
  const names = given.filter((name): name is string => typeof name === 'string' && !name.includes('${'));
  return names.map((name) => (name.startsWith('ml.') ? name : `ml.${name}`));
}

const DEFAULT_TYPE = 'ml.p5.48xlarge';
const instanceTypeOf = (recipe: Recipe): string => instanceTypesOf(recipe)[0] ?? DEFAULT_TYPE;

function instanceTypeRemarks(recipe: Recipe): Drafted['remarks'] {
  const [first, ...others] = instanceTypesOf(recipe);
  if (first === undefined)
    return [
      {
        field: 'instance_type',
        value: '(not set)',
        why: `${DEFAULT_TYPE} is a placeholder: set compute.instanceType`,
      },
    ];
  const why = `${first} is used; add the others as compute.alternatives`;
  return others.length === 0 ? [] : [{ field: 'instance_types', value: others, why }];
}

const ORDER = ['name', 'model', 'training', 'code', 'image', 'compute', 'distribution', 'checkpoints', 'limits'];

function complete(draft: Draft, library: string, instanceType: string): Draft {
  const whole: Draft = {
    ...draft,
    ...(library === 'smp-v2' && { image: { kind: 'smp', version: '2.4.1' } }),
    compute: { instanceType, ...(draft.compute as Draft) },
    distribution: { library, ...(draft.distribution as Draft) },
    checkpoints: draft.checkpoints && { mode: 'managed', ...(draft.checkpoints as Draft) },
  };
  return filled(Object.fromEntries(ORDER.map((key) => [key, whole[key]]))) ?? {};
}

function put(into: Draft, [key = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) into[key] = value;
  else {
    if (!isObject(into[key])) into[key] = {};
    put(into[key] as Draft, rest, value);
  }
}
