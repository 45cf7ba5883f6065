import { leavesOf } from './differences';
import {
  type Draft,
  type Drafted,
  draftWith,
  type Found,
  findRows,
  inOrder,
  isObject,
  type Row,
  runName,
  valueAt,
} from './rows';

/**
 * Whether a document is a recipe of https://github.com/aws/sagemaker-hyperpod-recipes (recipes_collection, read 2026-11-22): sections
 * `run`, `trainer` and `model`, or `training_config` in newer ones. Hydra's `${...}` is not resolved and is listed.
 */
export const isRecipe = (document: unknown): document is Draft =>
  isObject(document) && isObject(document.run) && (isObject(document.trainer) || isObject(document.training_config));

const count = (value: unknown) => (Number.isInteger(value) && Number(value) > 0 ? value : undefined);
const integer = (value: unknown) => (Number.isInteger(value) ? value : undefined);
const flag = (value: unknown) => (typeof value === 'boolean' ? value : undefined);
const isText = (value: unknown): value is string => typeof value === 'string' && !value.includes('${');
const name = (value: unknown) => (isText(value) && value !== '' ? runName(value) : undefined);

const PRECISIONS: Record<string, string> = {
  bf16: 'bf16',
  'bf16-mixed': 'bf16',
  bfloat16: 'bf16',
  fp16: 'fp16',
  '16-mixed': 'fp16',
  '32': 'fp32',
  fp32: 'fp32',
};
const CHECKPOINTING: Record<string, string> = { true: 'full', full: 'full', false: 'none', selective: 'selective' };
const precision = (value: unknown) => PRECISIONS[String(value)];
const checkpointing = (value: unknown) => CHECKPOINTING[String(value)];

/** Parses Slurm's `6-00:00:00` to seconds. */
function seconds(value: unknown): number | undefined {
  const [, days = 0, hours, minutes, rest] = /^(?:(\d+)-)?(\d+):(\d+):(\d+)$/.exec(String(value)) ?? [];
  if (hours === undefined) return undefined;
  return ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(rest);
}

const PARAMETERS = 'distribution.parameters.';
const ROWS: readonly Row[] = [
  ['name', 'run.name', name],
  ['compute.instanceCount', 'trainer.num_nodes', count],
  ['limits.maxRuntimeSeconds', 'run.time_limit', seconds],
  ['training.steps', 'trainer.max_steps', count],
  ['training.precision', ['trainer.precision', 'plugins.precision'], precision],
  [
    'training.sequenceLength',
    ['model.max_context_width', 'data.seq_length', 'model.data.seq_length', 'model.encoder_seq_length'],
    count,
  ],
  ['training.microBatchSize', ['model.train_batch_size', 'data.micro_batch_size', 'model.micro_batch_size'], count],
  ['training.globalBatchSize', ['data.global_batch_size', 'model.global_batch_size'], count],
  ['training.seed', 'model.seed', integer],
  ['training.activationCheckpointing', 'model.activation_checkpointing', checkpointing],
  ['training.activationOffload', 'model.offload_activations', flag],
  ['training.lora.rank', 'model.peft.rank', count],
  ['training.lora.alpha', 'model.peft.alpha', count],
  ['model.architecture.layers', ['model.num_hidden_layers', 'model.num_layers'], count],
  ['model.architecture.hiddenSize', 'model.hidden_size', count],
  ['model.architecture.attentionHeads', 'model.num_attention_heads', count],
  ['model.architecture.kvHeads', ['model.num_key_value_heads', 'model.num_query_groups'], count],
  ['model.architecture.ffnHiddenSize', ['model.intermediate_size', 'model.ffn_hidden_size'], count],
  ['model.architecture.vocabularySize', ['model.vocab_size', 'model.config.vocab_size'], count],
  ['model.architecture.ropeTheta', 'model.rope_theta', count],
  ['checkpoints.keep', 'exp_manager.checkpoint_callback_params.save_top_k', count],
  ['distribution.parameters.tensor_parallel_degree', 'model.tensor_model_parallel_degree', count],
  ['distribution.parameters.context_parallel_degree', 'model.context_parallel_degree', count],
  ['distribution.parameters.expert_parallel_degree', 'model.expert_model_parallel_degree', count],
  ['distribution.parameters.hybrid_shard_degree', 'model.shard_degree', count],
  ['distribution.parameters.activation_loading_horizon', 'model.activation_loading_horizon', count],
  [
    'distribution.parameters.tensor-model-parallel-size',
    ['strategy.tensor_model_parallel_size', 'model.tensor_model_parallel_size'],
    count,
  ],
  [
    'distribution.parameters.pipeline-model-parallel-size',
    ['strategy.pipeline_model_parallel_size', 'model.pipeline_model_parallel_size'],
    count,
  ],
  ['distribution.parameters.context-parallel-size', 'strategy.context_parallel_size', count],
  ['distribution.parameters.sequence-parallel', 'strategy.sequence_parallel', flag],
];

const WHY_REST = "a setting of the recipe's program; pass it in code.arguments if the program needs it";
const DEFAULT_TYPE = 'ml.p5.48xlarge';

/** The run file for a recipe: model shape, batch, cluster and parallel degrees; the program remains the recipe's. */
export function draftOfRecipe(recipe: Draft): Drafted {
  const found = findRows(ROWS, recipe);
  const library = libraryOf(recipe, found);
  const carried = found.filter(({ option }) => isUsable(option, library, found));
  const known = new Set([...carried.map(({ place }) => place), ...GIVEN_BY_TYPE]);
  const rest = [...leavesOf(recipe)].filter(([field, value]) => !known.has(field) && value !== null);
  const types = instanceTypesOf(recipe);
  const draft = draftWith(carried);
  return {
    draft: inOrder({
      ...draft,
      name: draft.name ?? 'recipe',
      code: { source: './src', entryPoint: 'train.py' },
      image: library === 'smp-v2' ? { kind: 'smp', version: '2.4.1' } : undefined,
      compute: { instanceType: types[0] ?? DEFAULT_TYPE, ...(draft.compute as Draft) },
      distribution: { library, ...(draft.distribution as Draft) },
      checkpoints: draft.checkpoints && { mode: 'managed', ...(draft.checkpoints as Draft) },
    }),
    remarks: [...instanceTypeRemarks(types), ...rest.map(([field, value]) => ({ field, value, why: WHY_REST }))],
  };
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

function libraryOf(recipe: Draft, found: readonly Found[]): string {
  if (recipe.use_smp_model === true || valueAt(recipe, 'model.use_smp_model') === true) return 'smp-v2';
  return found.some(({ option }) => /-model-parallel-size$/.test(option)) ? 'megatron' : 'custom';
}

const NEEDED_SHAPE = ['layers', 'hiddenSize', 'attentionHeads', 'ffnHiddenSize', 'vocabularySize'];

/** Drops parameters with the names of another library, and an incomplete model shape. */
function isUsable(option: string, library: string, found: readonly Found[]): boolean {
  if (option.startsWith(PARAMETERS)) return library === (option.includes('-') ? 'megatron' : 'smp-v2');
  if (!option.startsWith('model.architecture.')) return true;
  return NEEDED_SHAPE.every((part) => found.some((other) => other.option === `model.architecture.${part}`));
}

const instanceTypesOf = ({ instance_type, instance_types }: Draft): string[] =>
  [instance_type, instance_types]
    .flat()
    .filter(isText)
    .map((type) => (type.startsWith('ml.') ? type : `ml.${type}`));

function instanceTypeRemarks([first, ...others]: readonly string[]): Drafted['remarks'] {
  const placeholder = `${DEFAULT_TYPE} is a placeholder: set compute.instanceType`;
  if (first === undefined) return [{ field: 'instance_type', value: '(not set)', why: placeholder }];
  const why = `${first} is used; add the others as compute.alternatives`;
  return others.length === 0 ? [] : [{ field: 'instance_types', value: others, why }];
}
