import { orList } from '../config/issue';
import { worldSize } from '../config/resolve-run';
import { type Rule, rulesAbout, when } from '../config/rule';
import type { RunSpec } from '../config/run-spec';
import { disagrees, divisorsUpTo, nearestMultiple, parameterPath, tensorAcrossHosts } from './parameters';
import { flagArguments, type ParallelLayout, strategy } from './strategy';
import { torchrunHyperparameters } from './torchrun';

/** Number of ranks over which each expert is split; by default those of the tensor-parallel group. */
export const EXPERT_TENSOR = 'expert-tensor-parallel-size';

/** A flag by name, with hyphens, underscores or leading dashes. */
export function flag(run: RunSpec, name: string): { key: string; value: unknown } | undefined {
  const plain = (key: string) => key.replace(/^-+/, '').replaceAll('_', '-');
  const entry = Object.entries(run.distribution.parameters).find(([key]) => plain(key) === name);
  return entry && { key: entry[0], value: entry[1] };
}

/** A parallel size; `without` if it is not given. */
function size(run: RunSpec, name: string, without = 1): number {
  const value = flagNumber(run, name) ?? without;
  return Number.isInteger(value) && value > 0 ? value : 1;
}

/** The given parallel sizes, and the number of ranks that they divide. */
function megatronSizes(run: RunSpec) {
  const tensor = size(run, 'tensor-model-parallel-size');
  return {
    world: worldSize(run),
    tensor,
    pipeline: size(run, 'pipeline-model-parallel-size'),
    context: size(run, 'context-parallel-size'),
    expert: size(run, 'expert-model-parallel-size'),
    expertTensor: size(run, EXPERT_TENSOR, tensor),
  };
}

/** The value of a flag that is a whole number; undefined when it is not given. */
export function flagNumber(run: RunSpec, name: string): number | undefined {
  const value = flag(run, name)?.value;
  return typeof value === 'number' ? value : undefined;
}

/** Path of a flag in the run file, in the user's own spelling. */
const flagPath = (run: RunSpec, name: string) => parameterPath(flag(run, name)?.key ?? name);

const megatronRule = rulesAbout((run) => (run.distribution.library === 'megatron' ? megatronSizes(run) : undefined));

type Sizes = ReturnType<typeof megatronSizes>;

const DIVIDED: readonly { name: string; by: string; divisor(sizes: Sizes): number }[] = [
  { name: 'num-layers', by: 'pipeline-model-parallel-size', divisor: ({ pipeline }) => pipeline },
  { name: 'num-attention-heads', by: 'tensor-model-parallel-size', divisor: ({ tensor }) => tensor },
  { name: 'num-query-groups', by: 'tensor-model-parallel-size', divisor: ({ tensor }) => tensor },
  { name: 'num-experts', by: 'expert-model-parallel-size', divisor: ({ expert }) => expert },
  { name: 'seq-length', by: '2 x context-parallel-size', divisor: ({ context }) => (context > 1 ? 2 * context : 1) },
];

/** Flags that duplicate an option of `training`. */
const SHARED = [
  { name: 'seq-length', option: 'sequenceLength' },
  { name: 'micro-batch-size', option: 'microBatchSize' },
  { name: 'global-batch-size', option: 'globalBatchSize' },
] as const;

const SIZES = [
  'tensor-model-parallel-size',
  'pipeline-model-parallel-size',
  'context-parallel-size',
  'expert-model-parallel-size',
  EXPERT_TENSOR,
];

/** Assertions of Megatron-LM about its parallel sizes, model and batch before the first step, as far as its flags give them. */
const MEGATRON_RULES: readonly Rule[] = [
  megatronRule('megatron/sizes', 'error', (run) =>
    SIZES.flatMap((name) => {
      const given = flag(run, name);
      if (!given || (Number.isInteger(given.value) && (given.value as number) > 0)) return [];
      return { path: parameterPath(given.key), must: 'must be a whole number of at least 1', fix: 'use 1 or more' };
    }),
  ),
  megatronRule('megatron/degrees', 'error', (run, { world, tensor, pipeline, context, expert, expertTensor }) => {
    const product = tensor * pipeline * context;
    if (world % product !== 0) {
      const name =
        SIZES.find((n) => world % size(run, n) !== 0) ??
        (pipeline > 1 ? 'pipeline-model-parallel-size' : 'tensor-model-parallel-size');
      return {
        path: flagPath(run, name),
        must: `must make tensor x pipeline x context a divisor of the world size ${world}`,
        got: `${tensor} x ${pipeline} x ${context} = ${product}`,
        fix: `use sizes whose product is ${orList(divisorsUpTo(world, 64))}`,
      };
    }
    const ranks = world / pipeline;
    const isUneven = ranks % (expert * expertTensor) !== 0;
    return when(isUneven, flagPath(run, expert > 1 ? 'expert-model-parallel-size' : EXPERT_TENSOR), {
      must: `must make expert x ${EXPERT_TENSOR} a divisor of the ${ranks} ranks of a pipeline stage`,
      got: `${expert} x ${expertTensor} = ${expert * expertTensor}`,
      fix: `use sizes whose product is ${orList(divisorsUpTo(ranks, 64))}, for example with ${EXPERT_TENSOR} 1`,
    });
  }),
  megatronRule('megatron/sequence-parallel', 'warning', (run, { tensor }) =>
    when(flag(run, 'sequence-parallel')?.value === true && tensor === 1, flagPath(run, 'sequence-parallel'), {
      must: 'must be used with tensor-model-parallel-size above 1',
      fix: 'remove it, or raise the tensor size',
    }),
  ),
  megatronRule('megatron/expert-sequence', 'error', (run, { tensor, expert }) => {
    const isMissing = tensor > 1 && expert > 1 && flag(run, 'sequence-parallel')?.value !== true;
    return when(isMissing, flagPath(run, 'sequence-parallel'), {
      must: 'must be true with tensor-model-parallel-size and expert-model-parallel-size above 1',
      got: flag(run, 'sequence-parallel')?.value ?? 'nothing',
      fix: 'set it to true',
    });
  }),
  megatronRule('megatron/virtual-stages', 'error', (run, { pipeline }) => {
    const name = 'num-layers-per-virtual-pipeline-stage';
    const perStage = flagNumber(run, name);
    const layers = Number(flag(run, 'num-layers')?.value ?? run.model?.architecture.layers ?? 0);
    if (perStage === undefined) return [];
    const path = flagPath(run, name);
    if (pipeline === 1)
      return {
        path,
        must: 'must be used with pipeline-model-parallel-size above 1',
        fix: 'remove it, or raise the pipeline size',
      };
    return when(layers > 0 && (layers / pipeline) % perStage !== 0, path, {
      must: `must divide the ${layers / pipeline} layers of one stage`,
      fix: `use ${orList(divisorsUpTo(Math.floor(layers / pipeline), 16))}`,
    });
  }),
  megatronRule('megatron/divisibility', 'warning', (run, sizes) =>
    DIVIDED.flatMap(({ name, by, divisor }) => {
      const [given, parts] = [flagNumber(run, name), divisor(sizes)];
      return when(given !== undefined && given % parts !== 0, flagPath(run, name), {
        must: `must be a multiple of ${by} ${parts}`,
        fix: `use a multiple of ${parts}, or a size of ${orList(divisorsUpTo(given ?? 1, 16))}`,
      });
    }),
  ),
  megatronRule('megatron/batch', 'error', (run, { world, tensor, pipeline, context }) => {
    const [global, micro] = [flagNumber(run, 'global-batch-size'), flagNumber(run, 'micro-batch-size')];
    const ranks = world / (tensor * pipeline * context);
    if (global === undefined || micro === undefined || !Number.isInteger(ranks)) return [];
    const unit = micro * ranks;
    return when(global % unit !== 0, flagPath(run, 'global-batch-size'), {
      must: `must be a multiple of micro-batch-size ${micro} x ${ranks} data-parallel ranks = ${unit}`,
      fix: `use ${nearestMultiple(global, unit)}`,
    });
  }),
  megatronRule('megatron/tensor-within-node', 'warning, may acknowledge', (run, { tensor }) =>
    tensorAcrossHosts(run, tensor, flagPath(run, 'tensor-model-parallel-size')),
  ),
  megatronRule('megatron/conflict', 'error', (run) => {
    const [precision] = (['bf16', 'fp16'] as const).filter((kind) => flag(run, kind)?.value === true);
    return [
      ...SHARED.flatMap(({ name, option }) => disagrees(run, option, flagPath(run, name), flagNumber(run, name))),
      ...disagrees(run, 'precision', flagPath(run, precision ?? 'bf16'), precision),
    ];
  }),
];

/** data parallel = world / (tp * pp * cp); experts are divided among the data-parallel ranks. */
function layout(run: RunSpec): ParallelLayout | undefined {
  const { world, tensor, pipeline, context, expert } = megatronSizes(run);
  const data = world / (tensor * pipeline * context);
  if (!Number.isInteger(data)) return undefined;
  const distributedOptimizer = flag(run, 'use-distributed-optimizer')?.value === true;
  const shard = distributedOptimizer ? data : 1;
  return { worldSize: world, tensor, pipeline, context, expert, shard, replicate: data / shard, dataParallel: data };
}

/** Megatron-LM, with flags generated from the run file. */
export const megatron = strategy({
  name: 'megatron',
  libraries: ['megatron'],
  layout,
  hyperparameters: (run) => ({ ...torchrunHyperparameters(run), ...run.distribution.parameters }),
  arguments: (run) => flagArguments(run.distribution.parameters),
  rules: MEGATRON_RULES,
});
