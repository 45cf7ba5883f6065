import type { Rule } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { dataParallelLayout, groupHyperparameters, type ParallelLayout, sdkInstanceType, strategy } from '../strategy';
import { mpiHyperparameters } from '../torchrun';
import { SMP_V1_ADVICE, SMP_V1_TECHNIQUE_ADVICE } from './advice';
import { SMP_V1_BATCH_RULES, SMP_V1_DEGREE_RULES } from './degree-rules';
import { smpV1Settings } from './parameters';
import { SMP_V1_OPTION_RULES, SMP_V1_PLATFORM_RULES } from './platform-rules';

/** All rules of SMP v1, in the order of their page. */
const SMP_V1_RULES: readonly Rule[] = [
  ...SMP_V1_PLATFORM_RULES,
  ...SMP_V1_DEGREE_RULES,
  ...SMP_V1_OPTION_RULES,
  ...SMP_V1_BATCH_RULES,
  ...SMP_V1_ADVICE,
  ...SMP_V1_TECHNIQUE_ADVICE,
];

/** pp * tp * rdp = world; sharded data parallelism divides the data-parallel ranks. */
function layout(run: RunSpec): ParallelLayout | undefined {
  const { world, pipeline, tensor, shard, isOn } = smpV1Settings(run);
  if (world % (pipeline * tensor) !== 0) return undefined;
  const replicas = world / (pipeline * tensor);
  const optimizerShard = isOn('shard_optimizer_state') ? replicas : 1;
  const sharded = shard > 1 ? shard : optimizerShard;
  if (replicas % sharded !== 0) return undefined;
  return {
    ...dataParallelLayout(run),
    tensor,
    pipeline,
    shard: sharded,
    replicate: replicas / sharded,
    // With prescaled_batch the tensor-parallel ranks share one batch; without it each rank reads its own.
    dataParallel: isOn('prescaled_batch') ? replicas : replicas * tensor,
  };
}

/** SageMaker model parallelism v1 under MPI, which AWS no longer develops. */
export const smpV1 = strategy({
  name: 'smp-v1',
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
