import { orList } from '../../config/issue';
import { type Finding, type Rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { contradictsPrecision, divisorsUpTo, nearestMultiple, tensorAcrossHosts } from '../parameters';
import { flag, flagNumber, flagPath, MEGATRON_SOURCE, megatronRule, type megatronSizes } from './flags';

type Sizes = ReturnType<typeof megatronSizes>;

/** Divisors of the model's flags. */
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

function batch(run: RunSpec, { world, tensor, pipeline, context }: Sizes): Finding[] {
  const [global, micro] = [flagNumber(run, 'global-batch-size'), flagNumber(run, 'micro-batch-size')];
  const ranks = world / (tensor * pipeline * context);
  if (global === undefined || micro === undefined || !Number.isInteger(ranks)) return [];
  const unit = micro * ranks;
  return when(global % unit !== 0, {
    path: flagPath(run, 'global-batch-size'),
    must: `must be a multiple of micro-batch-size ${micro} x ${ranks} data-parallel ranks = ${unit}`,
    got: global,
    fix: `use ${nearestMultiple(global, unit)}`,
  });
}

/** Assertions of Megatron-LM about model and batch, as far as its flags give them. */
export const MEGATRON_MODEL_RULES: readonly Rule[] = [
  megatronRule({
    id: 'megatron/divisibility',
    level: 'warning',
    what: 'The parallel sizes evenly divide layers, heads, query groups, experts and sequence length.',
    why: 'Megatron asserts this; forks may differ.',
    source: MEGATRON_SOURCE,
    find: (run, sizes) =>
      DIVIDED.flatMap(({ name, by, divisor }) => {
        const [given, parts] = [flagNumber(run, name), divisor(sizes)];
        return when(given !== undefined && given % parts !== 0, {
          path: flagPath(run, name),
          must: `must be a multiple of ${by} ${parts}`,
          got: given,
          fix: `use a multiple of ${parts}, or a size of ${orList(divisorsUpTo(given ?? 1, 16))}`,
        });
      }),
  }),
  megatronRule({
    id: 'megatron/batch',
    level: 'error',
    what: 'global-batch-size is a multiple of micro-batch-size x data-parallel ranks.',
    why: 'Megatron asserts this at the start.',
    source: MEGATRON_SOURCE,
    find: batch,
  }),
  megatronRule({
    id: 'megatron/tensor-within-node',
    level: 'warning',
    mayAcknowledge: true,
    what: 'Tensor parallelism stays inside one instance.',
    why: 'Otherwise every layer communicates over the network.',
    source: 'https://arxiv.org/abs/2104.04473',
    find: (run, { tensor }) => tensorAcrossHosts(run, tensor, flagPath(run, 'tensor-model-parallel-size')),
  }),
  megatronRule({
    id: 'megatron/conflict',
    level: 'error',
    what: 'Settings that are also in `training` have the same value.',
    why: 'Otherwise one of the two would be ignored.',
    source: 'docs/reference/run-file.md',
    find: (run) => {
      const written = run.written.training ?? {};
      const [precision] = (['bf16', 'fp16'] as const).filter((kind) => flag(run, kind)?.value === true);
      return [
        ...SHARED.flatMap(({ name, option }) => {
          const [ours, theirs] = [written[option], flagNumber(run, name)];
          return when(ours !== undefined && theirs !== undefined && ours !== theirs, {
            path: flagPath(run, name),
            must: `must agree with training.${option} ${ours}`,
            got: theirs,
            fix: 'write one of the two',
          });
        }),
        ...when(contradictsPrecision(written.precision, precision), {
          path: flagPath(run, precision ?? 'bf16'),
          must: `must agree with training.precision ${written.precision}`,
          got: true,
          fix: 'write one of the two',
        }),
      ];
    },
  }),
];
