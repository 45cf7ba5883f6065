import { guide } from '../../config/formats/aws-pages';
import { type Rule, when } from '../../config/rule';
import { parameterPath } from '../parameters';
import { smpV1Rule } from './parameters';

/** Configurations that SMP v1 accepts but that are not recommended. */
export const SMP_V1_ADVICE: readonly Rule[] = [
  smpV1Rule({
    id: 'smp-v1/prescaled-batch',
    level: 'warning',
    mayAcknowledge: true,
    what: 'prescaled_batch is recommended with pipeline and tensor parallelism.',
    why: 'The ranks of a tensor-parallel group then share one batch instead of reading separate batches; the configured batch size applies to the group.',
    source: guide('model-parallel-best-practices'),
    find: (_run, { pipeline, tensor, isOn }) =>
      when(pipeline > 1 && tensor > 1 && !isOn('prescaled_batch'), {
        path: parameterPath('prescaled_batch'),
        must: 'is recommended with pipeline and tensor parallelism',
        got: false,
        fix: 'add prescaled_batch: true and scale the batch by the tensor degree',
      }),
  }),
  smpV1Rule({
    id: 'smp-v1/mpi-options',
    level: 'warning',
    what: 'mpiOptions contain no option that the launcher already sets.',
    why: 'mpirun ends with "listed multiple times" if an MCA parameter is repeated.',
    source: guide('model-parallel-sm-sdk'),
    find: (run) =>
      when(run.distribution.mpiOptions.includes('btl_vader_single_copy_mechanism'), {
        path: 'distribution.mpiOptions',
        must: 'must not repeat --mca btl_vader_single_copy_mechanism, which is a default',
        got: run.distribution.mpiOptions,
        fix: 'remove it',
      }),
  }),
  smpV1Rule({
    id: 'smp-v1/archived',
    level: 'warning',
    mayAcknowledge: true,
    what: 'SMP v1 is archived.',
    why: 'Archived on 2023-12-19; its last release is 1.15.0 of 2023-04-27, its images receive no more patches.',
    source: guide('model-parallel'),
    find: () => [
      {
        path: 'distribution.library',
        must: 'must be a library that still gets releases',
        got: 'smp-v1',
        fix: 'use fsdp or megatron for new work, or acknowledge smp-v1/archived',
      },
    ],
  }),
];
