import { nearest } from '../catalog/nearest';
import { orList } from '../config/issue';
import { worldSize } from '../config/resolve-run';
import { type Finding, type Rule, rulesAbout, when } from '../config/rule';
import type { RunSpec } from '../config/run-spec';
import { bf16Findings, contradictsPrecision, disagrees, nearestMultiple, parameterPath } from './parameters';
import { dataParallelLayout, type ParallelLayout, strategy } from './strategy';
import { smddpEnvironment, torchrunHyperparameters } from './torchrun';

/** Top-level keys of the DeepSpeed configuration. Source: deepspeed.ai/docs/config-json, retrieved 2026-11-20. */
const KEYS: readonly string[] = [
  'train_batch_size',
  'train_micro_batch_size_per_gpu',
  'gradient_accumulation_steps',
  'optimizer',
  'scheduler',
  'communication_data_type',
  'seq_parallel_communication_data_type',
  'prescale_gradients',
  'gradient_predivide_factor',
  'sparse_gradients',
  'fp16',
  'bf16',
  'bfloat16',
  'amp',
  'gradient_clipping',
  'zero_optimization',
  'zero_allow_untested_optimizer',
  'zero_force_ds_cpu_optimizer',
  'aio',
  'steps_per_print',
  'wall_clock_breakdown',
  'dump_state',
  'flops_profiler',
  'autotuning',
  'activation_checkpointing',
  'sparse_attention',
  'data_efficiency',
  'curriculum_learning',
  'elasticity',
  'tensorboard',
  'wandb',
  'comet',
  'csv_monitor',
  'comms_logger',
  'compression_training',
  'checkpoint',
  'data_types',
  'dist_backend',
  'pipeline',
  'hybrid_engine',
  'compile',
  'tensor_parallel',
  'memory_breakdown',
  'nebula',
  'sequence_parallel_size',
  'dataloader_drop_last',
  'disable_allgather',
  'gradient_accumulation_dtype',
  'use_data_before_expert_parallel_parallelism',
  'timers',
  'eigenvalue',
  'progressive_layer_drop',
  'quantize_training',
  'monitor_config',
  'torch_autocast',
  'weight_quantization',
];

/** A section of options; empty for any other value. */
export const section = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

/** The parts of the configuration that rules and layout read; `auto` and absent values are undefined. */
export function deepspeedConfig(run: RunSpec) {
  const given = run.distribution.parameters;
  const zero = section(given.zero_optimization);
  const number = (value: unknown) => (typeof value === 'number' ? value : undefined);
  const enabled = (name: string) => {
    const value = section(given[name]).enabled;
    return typeof value === 'boolean' ? value : undefined;
  };
  return { stage: number(zero.stage), zero, batch: (key: string) => number(given[key]), isOn: enabled };
}

type View = ReturnType<typeof deepspeedConfig>;

const OFFLOAD_DEVICES = ['none', 'cpu', 'nvme'];

const rule = rulesAbout((run) => (run.distribution.library === 'deepspeed' ? deepspeedConfig(run) : undefined));

function conflict(key: string, ours: number | undefined, view: View, name: string): Finding[] {
  const theirs = view.batch(key);
  return when(ours !== undefined && theirs !== undefined && ours !== theirs, parameterPath(key), {
    must: `must agree with training.${name} ${ours}`,
    fix: 'write "auto", or one of the two',
  });
}

const DEEPSPEED_RULES: readonly Rule[] = [
  rule('deepspeed/stage', 'error, local', (_run, { zero }) =>
    when('stage' in zero && ![0, 1, 2, 3].includes(zero.stage as number), parameterPath('zero_optimization.stage'), {
      must: 'must be 0, 1, 2 or 3',
      fix: 'use 3 to shard parameters, gradients and optimizer',
    }),
  ),
  rule('deepspeed/keys', 'warning', (run) =>
    Object.keys(run.distribution.parameters)
      .filter((key) => !KEYS.includes(key))
      .map((key) => ({
        path: parameterPath(key),
        must: 'must be a key of the DeepSpeed configuration',
        got: key,
        fix: `use ${nearest(key, KEYS, 2).join(' or ')}, or remove it`,
      })),
  ),
  rule('deepspeed/batch', 'error', (run, view) => {
    const world = worldSize(run);
    const [train, micro, accumulation] = [
      'train_batch_size',
      'train_micro_batch_size_per_gpu',
      'gradient_accumulation_steps',
    ].map(view.batch);
    if (train === undefined) return [];
    const path = parameterPath('train_batch_size');
    const unit = world * (accumulation ?? 1);
    if (micro === undefined)
      return when(train % unit !== 0, path, {
        must: `must be a multiple of the ${world} ranks${unit > world ? ` x gradient_accumulation_steps ${accumulation} = ${unit}` : ''}`,
        fix: `use ${nearestMultiple(train, unit)}`,
      });
    const expected = micro * unit;
    const fits = accumulation === undefined ? train % (micro * world) === 0 : train === expected;
    if (fits) return [];
    return {
      path,
      must: `must be train_micro_batch_size_per_gpu ${micro} x gradient_accumulation_steps ${accumulation ?? 'n'} x ${world} ranks${accumulation ? ` = ${expected}` : ''}`,
      fix: `use ${accumulation ? expected : nearestMultiple(train, micro * world)}, or auto`,
    };
  }),
  rule('deepspeed/conflict', 'error', (run, view) => {
    const written = run.written.training ?? {};
    const precision = view.isOn('bf16') ? 'bf16' : view.isOn('fp16') ? 'fp16' : undefined;
    return [
      ...conflict('train_batch_size', written.globalBatchSize, view, 'globalBatchSize'),
      ...conflict('train_micro_batch_size_per_gpu', written.microBatchSize, view, 'microBatchSize'),
      ...disagrees(run, 'precision', parameterPath(`${precision}.enabled`), precision),
    ];
  }),
  rule('deepspeed/precision', 'error', (run, view) => [
    ...when(view.isOn('bf16') === true && view.isOn('fp16') === true, parameterPath('fp16.enabled'), {
      must: 'must be false when bf16 is enabled',
      fix: 'keep one of the two',
    }),
    ...(view.isOn('bf16') ? bf16Findings(run, 'bf16.enabled') : []),
  ]),
  rule('deepspeed/offload', 'error', (_run, { stage, zero }) => {
    const device = (key: string) => section(zero[key]).device;
    const asks = (key: string) => key in zero && device(key) !== 'none';
    const isEarly = asks('offload_param') && stage !== undefined && stage < 3;
    return [
      ...when(isEarly, parameterPath('zero_optimization.offload_param'), {
        must: 'must be used with stage 3',
        got: `stage ${stage}`,
        fix: 'use stage 3, or remove it',
      }),
      ...when(asks('offload_optimizer') && stage === 0, parameterPath('zero_optimization.offload_optimizer'), {
        must: 'must be used with stage 1, 2 or 3',
        got: 'stage 0',
        fix: 'use stage 1 or higher, or remove it',
      }),
      ...['offload_param', 'offload_optimizer'].flatMap((key) => {
        const isUnknown = asks(key) && !OFFLOAD_DEVICES.includes(String(device(key) ?? 'cpu'));
        return when(isUnknown, parameterPath(`zero_optimization.${key}.device`), {
          must: `must be ${orList(OFFLOAD_DEVICES)}`,
          fix: 'use cpu',
        });
      }),
    ];
  }),
  rule('deepspeed/backend', 'error', (run) => {
    const backend = run.distribution.parameters.dist_backend;
    const { collectives, collectivesAuto } = run.distribution;
    const isOther = typeof backend === 'string' && backend !== collectives && !(collectivesAuto && backend === 'nccl');
    return when(isOther, parameterPath('dist_backend'), {
      must: `must agree with distribution.collectives ${collectives}`,
      fix: `set distribution.collectives ${backend}, or remove it`,
    });
  }),
];

/** ZeRO shards over all ranks from stage 1 on. */
function layout(run: RunSpec): ParallelLayout {
  const world = worldSize(run);
  const shard = (deepspeedConfig(run).stage ?? 0) > 0 ? world : 1;
  return { ...dataParallelLayout(run), shard, replicate: world / shard };
}

/** The run's DeepSpeed JSON, with "auto" values replaced by values from the run file where it has them. */
export function resolvedDeepspeedConfig(run: RunSpec): Record<string, unknown> {
  const { microBatchSize, globalBatchSize, precision } = run.training;
  const world = worldSize(run);
  const accumulation = microBatchSize && globalBatchSize ? globalBatchSize / (microBatchSize * world) : undefined;
  const answers: Record<string, unknown> = {
    train_batch_size: globalBatchSize,
    train_micro_batch_size_per_gpu: microBatchSize,
    gradient_accumulation_steps: accumulation,
  };
  const config = Object.fromEntries(
    Object.entries(run.distribution.parameters).map(([key, value]) => [
      key,
      value === 'auto' ? (answers[key] ?? value) : value,
    ]),
  );
  for (const kind of ['bf16', 'fp16'] as const) {
    const section = config[kind] as { enabled?: unknown } | undefined;
    if (section?.enabled === 'auto') config[kind] = { ...section, enabled: !contradictsPrecision(precision, kind) };
  }
  return run.distribution.collectives === 'smddp' ? { ...config, dist_backend: 'smddp' } : config;
}

/** DeepSpeed ZeRO, configured by a file in the user's code. */
export const deepspeed = strategy({
  name: 'deepspeed',
  libraries: ['deepspeed'],
  layout,
  hyperparameters: torchrunHyperparameters,
  environment: (run) => ({
    ...smddpEnvironment(run),
    SLIPWAY_DEEPSPEED_CONFIG: JSON.stringify(resolvedDeepspeedConfig(run)),
  }),
  rules: DEEPSPEED_RULES,
});
