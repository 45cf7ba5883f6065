import { orList } from '../../config/issue';
import { type Rule, when } from '../../config/rule';
import { divisorsUpTo, parameterPath } from '../parameters';
import { EXPERT_TENSOR, flag, flagNumber, flagPath, MEGATRON_SOURCE, megatronRule, size } from './flags';
import { MEGATRON_MODEL_RULES } from './model-rules';

const SIZES = [
  'tensor-model-parallel-size',
  'pipeline-model-parallel-size',
  'context-parallel-size',
  'expert-model-parallel-size',
  EXPERT_TENSOR,
];

/** Assertions of Megatron-LM about its parallel sizes before the first step. */
export const MEGATRON_RULES: readonly Rule[] = [
  megatronRule({
    id: 'megatron/sizes',
    level: 'error',
    what: 'Parallel sizes are positive whole numbers.',
    why: 'Megatron parses them as integers.',
    source: MEGATRON_SOURCE,
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
  megatronRule({
    id: 'megatron/degrees',
    level: 'error',
    what: 'tensor x pipeline x context divides the world size, and expert x expert tensor size the ranks of a pipeline stage.',
    why: 'Megatron asserts this at the start.',
    source: MEGATRON_SOURCE,
    find: (run, { world, tensor, pipeline, context, expert, expertTensor }) => {
      const product = tensor * pipeline * context;
      if (world % product !== 0) {
        const name =
          SIZES.find((n) => world % size(run, n) !== 0) ??
          (pipeline > 1 ? 'pipeline-model-parallel-size' : 'tensor-model-parallel-size');
        return [
          {
            path: flagPath(run, name),
            must: `must make tensor x pipeline x context a divisor of the world size ${world}`,
            got: `${tensor} x ${pipeline} x ${context} = ${product}`,
            fix: `use sizes whose product is ${orList(divisorsUpTo(world, 64))}`,
          },
        ];
      }
      const ranks = world / pipeline;
      return when(ranks % (expert * expertTensor) !== 0, {
        path: flagPath(run, expert > 1 ? 'expert-model-parallel-size' : EXPERT_TENSOR),
        must: `must make expert x ${EXPERT_TENSOR} a divisor of the ${ranks} ranks of a pipeline stage`,
        got: `${expert} x ${expertTensor} = ${expert * expertTensor}`,
        fix: `use sizes whose product is ${orList(divisorsUpTo(ranks, 64))}, for example with ${EXPERT_TENSOR} 1`,
      });
    },
  }),
  megatronRule({
    id: 'megatron/sequence-parallel',
    level: 'warning',
    what: '--sequence-parallel requires tensor parallelism.',
    why: 'Without tensor parallelism, the flag has no effect.',
    source: MEGATRON_SOURCE,
    find: (run, { tensor }) =>
      when(flag(run, 'sequence-parallel')?.value === true && tensor === 1, {
        path: flagPath(run, 'sequence-parallel'),
        must: 'must be used with tensor-model-parallel-size above 1',
        got: true,
        fix: 'remove it, or raise the tensor size',
      }),
  }),
  megatronRule({
    id: 'megatron/expert-sequence',
    level: 'error',
    what: 'Expert parallelism combined with tensor parallelism requires --sequence-parallel.',
    why: 'Otherwise Megatron-Core raises a ValueError at the start.',
    source: 'https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/model_parallel_config.py',
    find: (run, { tensor, expert }) =>
      when(tensor > 1 && expert > 1 && flag(run, 'sequence-parallel')?.value !== true, {
        path: flagPath(run, 'sequence-parallel'),
        must: 'must be true with tensor-model-parallel-size and expert-model-parallel-size above 1',
        got: flag(run, 'sequence-parallel')?.value ?? 'nothing',
        fix: 'set it to true',
      }),
  }),
  megatronRule({
    id: 'megatron/virtual-stages',
    level: 'error',
    what: 'Virtual pipeline stages require more than one pipeline stage, and divide the layers of each stage.',
    why: 'Otherwise the interleaved schedule cannot be created.',
    source: MEGATRON_SOURCE,
    find: (run, { pipeline }) => {
      const name = 'num-layers-per-virtual-pipeline-stage';
      const perStage = flagNumber(run, name);
      const layers = Number(flag(run, 'num-layers')?.value ?? run.model?.architecture.layers ?? 0);
      if (perStage === undefined) return [];
      const path = flagPath(run, name);
      if (pipeline === 1)
        return [
          {
            path,
            must: 'must be used with pipeline-model-parallel-size above 1',
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
  ...MEGATRON_MODEL_RULES,
];
