import { worldSize } from '../spec/resolve-run';
import type { RunSpec } from '../spec/run-spec';
import { mpiHyperparameters } from './mpi';
import { SMP_V1_RULES } from './smp-v1-rules';
import { degree, groupHyperparameters, type ParallelLayout, sdkInstanceType, strategy } from './strategy';

/** pp * tp * rdp = world; sharded data parallelism divides the data-parallel ranks. */
function layout(run: RunSpec): ParallelLayout | undefined {
  const world = worldSize(run);
  const pipeline = degree(run, 'pipeline_parallel_degree', degree(run, 'partitions', 1));
  const tensor = degree(run, 'tensor_parallel_degree', 1);
  const shard = degree(run, 'sharded_data_parallel_degree', 1);
  if (world % (pipeline * tensor) !== 0) return undefined;
  const replicas = world / (pipeline * tensor);
  const optimizerShard = run.distribution.parameters.shard_optimizer_state === true ? replicas : 1;
  return {
    worldSize: world,
    tensor,
    pipeline,
    context: 1,
    expert: 1,
    shard: shard > 1 ? shard : optimizerShard,
    replicate: Math.max(1, replicas / Math.max(1, shard)),
    // With prescaled_batch the tensor-parallel ranks share one batch; without it each reads its own.
    dataParallel: run.distribution.parameters.prescaled_batch === true ? replicas : replicas * tensor,
  };
}

export const smpV1 = strategy({
  name: 'smp-v1',
  summary: 'SageMaker model parallel v1 (archived): pipeline, tensor and sharded data parallelism under MPI',
  libraries: ['smp-v1'],
  matches: (library) => library === 'smp-v1',
  layout,
  hyperparameters: (run) => ({
    ...groupHyperparameters(run),
    ...mpiHyperparameters(run),
    ...(Object.keys(run.distribution.parameters).length > 0 && { mp_parameters: run.distribution.parameters }),
    sagemaker_distributed_dataparallel_enabled: false,
    sagemaker_instance_type: sdkInstanceType(run),
  }),
  rules: SMP_V1_RULES,
});
