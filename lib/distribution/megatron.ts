import { orList } from '../spec/issue';
import { worldSize } from '../spec/resolve-run';
import { type Rule, rulesAbout, when } from '../spec/rule';
import type { RunSpec } from '../spec/run-spec';
import { divisorsUpTo, parameterPath } from './parameters';
import { flagArguments, type ParallelLayout, strategy } from './strategy';
import { torchrunHyperparameters } from './torchrun';

const SOURCE = 'https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/arguments.py';

/** A flag by name, whether it was written with hyphens, underscores or leading dashes. */
function flag(run: RunSpec, name: string): { key: string; value: unknown } | undefined {
  const plain = (key: string) => key.replace(/^-+/, '').replaceAll('_', '-');
  const entry = Object.entries(run.distribution.parameters).find(([key]) => plain(key) === name);
  return entry && { key: entry[0], value: entry[1] };
}

function size(run: RunSpec, name: string): number {
  const value = flag(run, name)?.value;
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : 1;
}

function sizes(run: RunSpec) {
  return {
    world: worldSize(run),
    tensor: size(run, 'tensor-model-parallel-size'),
    pipeline: size(run, 'pipeline-model-parallel-size'),
    context: size(run, 'context-parallel-size'),
    expert: size(run, 'expert-model-parallel-size'),
  };
}

/** data parallel = world / (tp * pp * cp); experts are spread over the data-parallel ranks. */
function layout(run: RunSpec): ParallelLayout | undefined {
  const { world, tensor, pipeline, context, expert } = sizes(run);
  const data = world / (tensor * pipeline * context);
  if (!Number.isInteger(data)) return undefined;
  const distributedOptimizer = flag(run, 'use-distributed-optimizer')?.value === true;
  const shard = distributedOptimizer ? data : 1;
  return { worldSize: world, tensor, pipeline, context, expert, shard, replicate: data / shard, dataParallel: data };
}

const rule = rulesAbout((run) => (run.distribution.library === 'megatron' ? sizes(run) : undefined));

const at = (run: RunSpec, name: string) => parameterPath(flag(run, name)?.key ?? name);
const SIZES = [
  'tensor-model-parallel-size',
  'pipeline-model-parallel-size',
  'context-parallel-size',
  'expert-model-parallel-size',
];

const rules: Rule[] = [
  rule({
    id: 'megatron/sizes',
    level: 'error',
    what: 'Parallel sizes are whole numbers from 1 on.',
    why: 'Megatron parses them as integers.',
    source: SOURCE,
    find: (run) =>
      SIZES.flatMap((name) => {
        const given = flag(run, name);
        if (!given || (Number.isInteger(given.value) && (given.value as number) > 0)) return [];
        return [
          {
            path: parameterPath(given.key),
            must: 'must be a whole number of at least 1',
            got: given.value,
            fix: 'use 1 or more',
          },
        ];
      }),
  }),
  rule({
    id: 'megatron/degrees',
    level: 'error',
    what: 'tensor x pipeline x context divides the world size, and expert divides the data-parallel ranks.',
    why: 'Megatron asserts it at start.',
    source: SOURCE,
    find: (run, { world, tensor, pipeline, context, expert }) => {
      const product = tensor * pipeline * context;
      if (world % product !== 0) {
        const name =
          SIZES.find((n) => world % size(run, n) !== 0) ??
          (pipeline > 1 ? 'pipeline-model-parallel-size' : 'tensor-model-parallel-size');
        return [
          {
            path: at(run, name),
            must: `must make tensor x pipeline x context a divisor of the world size ${world}`,
            got: `${tensor} x ${pipeline} x ${context} = ${product}`,
            fix: `use sizes whose product is ${orList(divisorsUpTo(world, 64))}`,
          },
        ];
      }
      const data = (world / (tensor * pipeline * context)) * context * tensor;
      return when(data % expert !== 0, {
        path: at(run, 'expert-model-parallel-size'),
        must: `must divide the ${data} ranks of a pipeline stage`,
        got: expert,
        fix: `use ${orList(divisorsUpTo(data, 64))}`,
      });
    },
  }),
  rule({
    id: 'megatron/sequence-parallel',
    level: 'warning',
    what: '--sequence-parallel goes with tensor parallelism.',
    why: 'Without it the flag does nothing.',
    source: SOURCE,
    find: (run, { tensor }) =>
      when(flag(run, 'sequence-parallel')?.value === true && tensor === 1, {
        path: at(run, 'sequence-parallel'),
        must: 'must go with tensor-model-parallel-size above 1',
        got: true,
        fix: 'remove it, or raise the tensor size',
      }),
  }),
  rule({
    id: 'megatron/virtual-stages',
    level: 'error',
    what: 'Virtual pipeline stages need more than one pipeline stage and divide its layers.',
    why: 'The interleaved schedule cannot be built otherwise.',
    source: SOURCE,
    find: (run, { pipeline }) => {
      const name = 'num-layers-per-virtual-pipeline-stage';
      const perStage = flag(run, name)?.value;
      const layers = Number(flag(run, 'num-layers')?.value ?? run.model?.architecture.layers ?? 0);
      if (typeof perStage !== 'number') return [];
      const path = at(run, name);
      if (pipeline === 1)
        return [
          {
            path,
            must: 'must go with pipeline-model-parallel-size above 1',
            got: perStage,
            fix: 'remove it, or raise the pipeline size',
          },
        ];
      return when(layers > 0 && (layers / pipeline) % perStage !== 0, {
        path,
        must: `must divide the ${layers / pipeline} layers of one stage`,
        got: perStage,
        fix: `use ${orList(divisorsUpTo(Math.floor(layers / pipeline), 16))}`,
      });
    },
  }),
];

export const megatron = strategy({
  name: 'megatron',
  summary: 'Megatron-LM (and Megatron-DeepSpeed) under torchrun; its parallel sizes are flags',
  libraries: ['megatron'],
  matches: (library, launcher) => library === 'megatron' && launcher === 'torchrun',
  layout,
  hyperparameters: (run) => ({ ...torchrunHyperparameters(run), ...run.distribution.parameters }),
  arguments: (run) => flagArguments(run.distribution.parameters),
  rules,
});
