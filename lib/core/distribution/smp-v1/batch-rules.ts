import { guide } from '../../config/formats/aws-pages';
import { type Rule, when } from '../../config/rule';
import { parameterPath } from '../parameters';
import { degree } from '../strategy';
import { smpV1Rule } from './parameters';

/** Rules about microbatches of SMP v1, and offloading, which depends on them. */
export const SMP_V1_BATCH_RULES: readonly Rule[] = [
  smpV1Rule({
    id: 'smp-v1/microbatches',
    level: 'error',
    what: 'The batch size per rank is a multiple of microbatches, and active_microbatches does not exceed microbatches.',
    why: 'With a batch that cannot be split, the job fails at its first step.',
    source: guide('model-parallel-customize-tips-pitfalls'),
    find: (run) => {
      const microbatches = degree(run, 'microbatches', 1);
      const active = degree(run, 'active_microbatches', 0);
      const batch = run.written.training?.microBatchSize;
      return [
        ...when(batch !== undefined && batch % microbatches !== 0, {
          path: 'training.microBatchSize',
          // A batch of one sequence may be what the script calls a microbatch.
          ...(batch === 1 && { level: 'warning' as const }),
          must: `must be a multiple of microbatches ${microbatches}`,
          got: batch,
          fix: `use ${microbatches * Math.ceil((batch ?? 1) / microbatches)}`,
        }),
        ...when(active > microbatches, {
          path: parameterPath('active_microbatches'),
          level: 'warning',
          must: `must be at most microbatches ${microbatches} to have an effect`,
          got: active,
          fix: `use ${microbatches} or less`,
        }),
      ];
    },
  }),
  smpV1Rule({
    id: 'smp-v1/offload',
    level: 'warning',
    what: 'Activation offloading needs activation checkpointing and more than one microbatch.',
    why: 'Otherwise offloading saves no memory.',
    source: guide('model-parallel-extended-features-pytorch-activation-offloading'),
    find: (run, { isOn, shard }) => {
      if (!isOn('offload_activations')) return [];
      const ours = run.written.training?.activationOffload;
      return [
        ...when(run.written.training?.activationCheckpointing === 'none', {
          path: 'training.activationCheckpointing',
          must: 'must be selective or full with offload_activations',
          got: 'none',
          fix: 'use full',
        }),
        ...when(degree(run, 'microbatches', 1) === 1 && shard <= 1, {
          path: parameterPath('microbatches'),
          must: 'must be above 1 for offload_activations to save memory',
          got: degree(run, 'microbatches', 1),
          fix: 'use 2 or 4',
        }),
        ...when(ours === false, {
          path: parameterPath('offload_activations'),
          level: 'error',
          must: 'must agree with training.activationOffload false',
          got: true,
          fix: 'write one of the two',
        }),
      ];
    },
  }),
];
