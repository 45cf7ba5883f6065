import type { Rule } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { pythonJson } from '../python-json';
import { type ParallelLayout, sdkInstanceType, strategy } from '../strategy';
import { SMP_V2_ADVICE } from './advice';
import { SMP_V2_DEGREE_RULES, SMP_V2_OFFLOAD_RULES } from './degree-rules';
import { smpV2Degrees } from './parameters';
import { SMP_V2_CLUSTER_RULES, SMP_V2_PLATFORM_RULES } from './platform-rules';

/** All rules of SMP v2, in the order of their page. */
const SMP_V2_RULES: readonly Rule[] = [
  ...SMP_V2_DEGREE_RULES,
  ...SMP_V2_PLATFORM_RULES,
  ...SMP_V2_OFFLOAD_RULES,
  ...SMP_V2_CLUSTER_RULES,
  ...SMP_V2_ADVICE,
];

/** Rules 3 and 6 of SMP's adapter: world % (SD * TP * EP) = 0; number of distinct batches = world / (TP * CP). */
function layout(run: RunSpec): ParallelLayout | undefined {
  const { shard, tensor, context, expert, world } = smpV2Degrees(run);
  if (world % (tensor * context) !== 0 || world % (Math.max(1, shard) * tensor * expert) !== 0) return undefined;
  const sharded = shard === 0 ? world / (tensor * expert) : shard;
  return {
    worldSize: world,
    tensor,
    pipeline: 1,
    context,
    expert,
    shard: sharded,
    replicate: world / (sharded * tensor * expert),
    dataParallel: world / (tensor * context),
  };
}

/** SageMaker model parallelism v2 over FSDP. */
export const smpV2 = strategy({
  name: 'smp-v2',
  libraries: ['smp-v2'],
  matches: (library) => library === 'smp-v2',
  layout,
  hyperparameters: (run) => ({
    sagemaker_torch_distributed_enabled: true,
    sagemaker_distributed_dataparallel_enabled: false,
    sagemaker_instance_type: sdkInstanceType(run),
    ...(Object.keys(run.distribution.parameters).length > 0 && { mp_parameters: run.distribution.parameters }),
  }),
  // torch.sagemaker reads the job's configuration from this variable; it may exceed the 512 characters of Environment.
  environment: (run): Record<string, string> =>
    Object.keys(run.distribution.parameters).length > 0
      ? { SM_HP_MP_PARAMETERS: pythonJson(run.distribution.parameters) }
      : {},
  rules: SMP_V2_RULES,
});
