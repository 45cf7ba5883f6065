import { worldSize } from '../../config/resolve-run';
import { rulesAbout } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import type { ParameterKind } from '../parameters';
import { degree } from '../strategy';

/**
 * All parameters of SMP v2; the reference page says that the list is complete:
 * https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-model-parallel-v2-reference.html
 */
export const SMP_V2_PARAMETERS: Readonly<Record<string, ParameterKind>> = {
  hybrid_shard_degree: { type: 'int', min: 0 },
  sm_activation_offloading: { type: 'bool' },
  activation_loading_horizon: { type: 'int', min: 1 },
  fsdp_cache_flush_warnings: { type: 'bool' },
  allow_empty_shards: { type: 'bool' },
  tensor_parallel_degree: { type: 'int', min: 1 },
  context_parallel_degree: { type: 'int', min: 1 },
  expert_parallel_degree: { type: 'int', min: 1 },
  random_seed: { type: 'int', min: 0 },
};

/** The given degrees; 0 or absent means the default of the reference page. */
export function smpV2Degrees(run: RunSpec) {
  return {
    shard: degree(run, 'hybrid_shard_degree', 0),
    tensor: degree(run, 'tensor_parallel_degree', 1),
    context: degree(run, 'context_parallel_degree', 1),
    expert: degree(run, 'expert_parallel_degree', 1),
    world: worldSize(run),
  };
}

/** Makes a rule of SMP v2. */
export const smpV2Rule = rulesAbout((run) => (run.distribution.library === 'smp-v2' ? smpV2Degrees(run) : undefined));
