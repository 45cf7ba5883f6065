import { findInstanceType } from '../../catalog/instances/instances';
import { orList } from '../../config/issue';
import { type Rule, when } from '../../config/rule';
import { compareVersions, pytorchOfImage } from '../image-version';
import { divisorsUpTo, parameterPath } from '../parameters';
import { degree } from '../strategy';
import { smpV1Rule } from './parameters';

/** Rules about the degrees of SMP v1 in relation to each other and to the cluster. */
export const SMP_V1_DEGREE_RULES: readonly Rule[] = [
  smpV1Rule('smp-v1/partitions-twice', 'error', (run, { has }) =>
    when(
      has('partitions') &&
        has('pipeline_parallel_degree') &&
        run.distribution.parameters.partitions !== run.distribution.parameters.pipeline_parallel_degree,
      parameterPath('partitions'),
      {
        must: `must equal pipeline_parallel_degree ${run.distribution.parameters.pipeline_parallel_degree}`,
        fix: 'write pipeline_parallel_degree alone',
      },
    ),
  ),
  smpV1Rule('smp-v1/degrees', 'error', (_run, { world, pipeline, tensor, shard }) => {
    if (world % (pipeline * tensor) !== 0) {
      return {
        path: parameterPath(pipeline > 1 ? 'pipeline_parallel_degree' : 'tensor_parallel_degree'),
        must: `must make pipeline x tensor a divisor of the world size ${world}`,
        got: `${pipeline} x ${tensor}`,
        fix: `use degrees whose product is ${orList(divisorsUpTo(world, 64))}`,
      };
    }
    const replicas = world / (pipeline * tensor);
    return when(shard > 1 && replicas % shard !== 0, parameterPath('sharded_data_parallel_degree'), {
      must: `must divide the ${replicas} data-parallel ranks`,
      fix: `use ${orList(divisorsUpTo(replicas, 1024).slice(-6))}`,
    });
  }),
  smpV1Rule('smp-v1/tensor-needs-ddp', 'error', (_run, { tensor, shard, isOn }) =>
    when((tensor > 1 || shard > 1) && !isOn('ddp'), parameterPath('ddp'), {
      must: `must be true with ${tensor > 1 ? `tensor_parallel_degree ${tensor}` : `sharded_data_parallel_degree ${shard}`}`,
      got: false,
      fix: 'add ddp: true',
    }),
  ),
  smpV1Rule('smp-v1/tensor-within-node', 'error', (run, { tensor }) => {
    const gpus = findInstanceType(run.compute.instanceType)?.accelerator?.count ?? run.distribution.processesPerHost;
    if (tensor > gpus)
      return {
        path: parameterPath('tensor_parallel_degree'),
        must: `must be at most the ${gpus} GPUs of one instance`,
        fix: `use ${orList(divisorsUpTo(gpus, gpus))}`,
      };
    const power = (tensor & (tensor - 1)) === 0;
    return when(!power, parameterPath('tensor_parallel_degree'), {
      level: 'warning',
      must: 'must be a power of two to be recommended',
      fix: 'use 1, 2, 4 or 8',
    });
  }),
  smpV1Rule('smp-v1/sharded-data-parallel', 'error', (run, { shard, pipeline, tensor, isOn }) => {
    if (shard <= 1) return [];
    const version = pytorchOfImage(run);
    return [
      ...when(pipeline > 1, parameterPath('pipeline_parallel_degree'), {
        must: `must be 1 with sharded_data_parallel_degree ${shard}`,
        got: pipeline,
        fix: 'use one of the two',
      }),
      ...when(isOn('shard_optimizer_state'), parameterPath('shard_optimizer_state'), {
        must: 'must be false with sharded data parallelism',
        fix: 'remove it: the optimizer state is sharded already',
      }),
      ...when(tensor > 1 && !isOn('prescaled_batch'), parameterPath('prescaled_batch'), {
        must: 'must be true with sharded data parallelism and tensor parallelism',
        got: run.distribution.parameters.prescaled_batch ?? false,
        fix: 'add prescaled_batch: true',
      }),
      ...when(tensor > 1 && version !== undefined && compareVersions(version, '1.13.1') < 0, 'image.version', {
        must: 'must be 1.13.1 or 2.0.0 for sharded data parallelism with tensor parallelism',
        got: version,
        fix: 'use version "1.13.1"',
      }),
    ];
  }),
];

/** Rules about microbatches of SMP v1, and offloading, which depends on them. */
export const SMP_V1_BATCH_RULES: readonly Rule[] = [
  smpV1Rule('smp-v1/microbatches', 'error', (run) => {
    const microbatches = degree(run, 'microbatches', 1);
    const active = degree(run, 'active_microbatches', 0);
    const batch = run.written.training?.microBatchSize;
    return [
      ...when(batch !== undefined && batch % microbatches !== 0, 'training.microBatchSize', {
        // A batch of one sequence may be what the script calls a microbatch.
        ...(batch === 1 && { level: 'warning' as const }),
        must: `must be a multiple of microbatches ${microbatches}`,
        fix: `use ${microbatches * Math.ceil((batch ?? 1) / microbatches)}`,
      }),
      ...when(active > microbatches, parameterPath('active_microbatches'), {
        level: 'warning',
        must: `must be at most microbatches ${microbatches} to have an effect`,
        fix: `use ${microbatches} or less`,
      }),
    ];
  }),
  smpV1Rule('smp-v1/offload', 'warning', (run, { isOn, shard }) => {
    if (!isOn('offload_activations')) return [];
    const ours = run.written.training?.activationOffload;
    return [
      ...when(run.written.training?.activationCheckpointing === 'none', 'training.activationCheckpointing', {
        must: 'must be selective or full with offload_activations',
        fix: 'use full',
      }),
      ...when(degree(run, 'microbatches', 1) === 1 && shard <= 1, parameterPath('microbatches'), {
        must: 'must be above 1 for offload_activations to save memory',
        got: degree(run, 'microbatches', 1),
        fix: 'use 2 or 4',
      }),
      ...when(ours === false, parameterPath('offload_activations'), {
        level: 'error',
        must: 'must agree with training.activationOffload false',
        fix: 'write one of the two',
      }),
    ];
  }),
];
