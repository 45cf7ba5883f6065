import { guide } from '../../config/formats/aws-pages';
import { type Rule, when } from '../../config/rule';
import { bf16Findings, parameterPath } from '../parameters';
import { smpV1Rule } from './parameters';

/** Rules about options of SMP v1 that require or exclude each other. */
export const SMP_V1_OPTION_RULES: readonly Rule[] = [
  smpV1Rule({
    id: 'smp-v1/precision',
    level: 'error',
    what: 'bf16 needs sharded data parallelism; fp16 and bf16 exclude each other and agree with training.precision.',
    why: 'Otherwise the library rejects bf16.',
    source: guide('model-parallel-extended-features-pytorch-sharded-data-parallelism'),
    find: (run, { shard, isOn }) => {
      const written = run.written.training?.precision;
      const theirs = isOn('bf16') ? 'bf16' : isOn('fp16') ? 'fp16' : undefined;
      return [
        ...when(isOn('bf16') && shard <= 1, {
          path: parameterPath('bf16'),
          must: 'must be used with sharded_data_parallel_degree above 1',
          got: true,
          fix: 'use fp16: true, or shard',
        }),
        ...(isOn('bf16') ? bf16Findings(run, 'bf16') : []),
        ...when(isOn('bf16') && isOn('fp16'), {
          path: parameterPath('fp16'),
          must: 'must not be on together with bf16',
          got: true,
          fix: 'remove one of the two',
        }),
        ...when(written !== undefined && theirs !== undefined && written !== theirs, {
          path: parameterPath(theirs ?? 'bf16'),
          must: `must agree with training.precision ${written}`,
          got: true,
          fix: 'write one of the two',
        }),
      ];
    },
  }),
  smpV1Rule({
    id: 'smp-v1/partitioning',
    level: 'error',
    what: 'auto_partition: false needs default_partition, which is below the number of partitions.',
    why: 'The SDK and the library reject other combinations.',
    source: 'aws/sagemaker-python-sdk v2.257.6 fw_utils.py validate_mp_config',
    find: (run, { pipeline, has }) => {
      const manual = run.distribution.parameters.auto_partition === false;
      const chosen = run.distribution.parameters.default_partition;
      return [
        ...when(manual && !has('default_partition'), {
          path: parameterPath('default_partition'),
          must: 'must be given with auto_partition false',
          fix: 'add default_partition: 0',
        }),
        ...when(typeof chosen === 'number' && chosen >= pipeline, {
          path: parameterPath('default_partition'),
          must: `must be below the ${pipeline} partitions`,
          got: chosen,
          fix: `use 0 to ${pipeline - 1}`,
        }),
      ];
    },
  }),
  smpV1Rule({
    id: 'smp-v1/ddp-options',
    level: 'error',
    what: 'ddp_port and ddp_dist_backend need ddp; ddp and horovod exclude each other.',
    why: 'The SDK rejects other combinations.',
    source: 'aws/sagemaker-python-sdk v2.257.6 fw_utils.py validate_mp_config',
    find: (run, { has, isOn }) => [
      ...['ddp_port', 'ddp_dist_backend'].flatMap((key) =>
        when(has(key) && !isOn('ddp'), {
          path: parameterPath(key),
          must: 'must be used with ddp: true',
          got: run.distribution.parameters[key],
          fix: 'add ddp: true',
        }),
      ),
      ...when(isOn('ddp') && isOn('horovod'), {
        path: parameterPath('horovod'),
        must: 'must not be on together with ddp',
        got: true,
        fix: 'remove it',
      }),
    ],
  }),
];
