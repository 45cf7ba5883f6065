import { orList } from '../../config/issue';
import { type Finding, type Rule, when } from '../../config/rule';
import { divisorsUpTo, parameterFindings, parameterPath, unevenSequence } from '../parameters';
import { SMP_V2_PARAMETERS, type smpV2Degrees, smpV2Rule } from './parameters';

type Degrees = ReturnType<typeof smpV2Degrees>;

function divides(all: Degrees, key: 'tensor' | 'context' | 'expert'): Finding[] {
  if (all.world % all[key] === 0) return [];
  const fix = `use ${orList(divisorsUpTo(all.world, 64))}`;
  return [{ path: parameterPath(`${key}_parallel_degree`), must: `must divide the world size ${all.world}`, fix }];
}

/** Rules about the degrees of SMP v2 in relation to each other and to the cluster. */
export const SMP_V2_DEGREE_RULES: readonly Rule[] = [
  smpV2Rule('smp-v2/parameters', 'error, local', (run) =>
    parameterFindings(run.distribution.parameters, SMP_V2_PARAMETERS, {
      library: 'SMP v2',
      unknownFix: (key) =>
        /pipeline|partition|microbatch/.test(key)
          ? 'remove it: SMP v2 has no pipeline parallelism; smp-v1 and megatron have'
          : `use ${orList(Object.keys(SMP_V2_PARAMETERS))}, or set it in the script`,
    }),
  ),
  smpV2Rule('smp-v2/degrees', 'error', (_run, degrees) => {
    const { shard, tensor, context, expert, world } = degrees;
    // smp-v2/parameters reports these values.
    if (Math.min(tensor, context, expert) < 1) return [];
    const single = (['tensor', 'context', 'expert'] as const).flatMap((key) => divides(degrees, key));
    if (single.length > 0) return single;
    if (world % (tensor * context) !== 0)
      return {
        path: parameterPath('context_parallel_degree'),
        must: `must make tensor_parallel_degree x context_parallel_degree a divisor of the world size ${world}`,
        got: `${tensor} x ${context} = ${tensor * context}`,
        fix: `use ${orList(divisorsUpTo(world / tensor, 64))}`,
      };
    const size = Math.max(1, shard) * tensor * expert;
    if (shard <= world && world % size === 0) return [];
    const choices = divisorsUpTo(world / (tensor * expert), 1024).slice(-6);
    const must = `must make hybrid_shard_degree x tensor_parallel_degree x expert_parallel_degree a divisor of the world size ${world}`;
    return {
      path: parameterPath('hybrid_shard_degree'),
      must,
      got: `${Math.max(1, shard)} x ${tensor} x ${expert} = ${size}`,
      fix: `use a shard degree of ${orList(choices)}, or another instance count`,
    };
  }),
  smpV2Rule('smp-v2/context-within-shard', 'error', (_run, { context, shard }) =>
    when(context > 1 && shard !== 0 && context > shard, parameterPath('context_parallel_degree'), {
      must: `must be at most hybrid_shard_degree ${shard}`,
      fix: `lower it, or raise hybrid_shard_degree to ${context} or more`,
    }),
  ),
  smpV2Rule('smp-v2/context-sequence', 'error', (run, { context }) => unevenSequence(run, context)),
  smpV2Rule('smp-v2/expert-with-tensor', 'warning', (_run, { expert, tensor }) =>
    when(expert > 1 && tensor > 1, parameterPath('expert_parallel_degree'), {
      must: 'must be 1 with tensor parallelism',
      got: `${expert} with TP ${tensor}`,
      fix: 'use one of the two',
    }),
  ),
];

/** Rules about activation offloading of SMP v2. */
export const SMP_V2_OFFLOAD_RULES: readonly Rule[] = [
  smpV2Rule('smp-v2/offload-release', 'warning', (run) =>
    when(
      run.image.kind === 'smp' &&
        run.image.version === '2.2.0' &&
        run.distribution.parameters.sm_activation_offloading !== false &&
        (run.training.activationOffload || run.distribution.parameters.sm_activation_offloading === true),
      parameterPath('sm_activation_offloading'),
      {
        must: 'must be false on SMP 2.2.0',
        got: run.distribution.parameters.sm_activation_offloading ?? 'true (default)',
        fix: 'set it to false, or use image.version "2.5.1"',
      },
    ),
  ),
  smpV2Rule('smp-v2/offload-without-checkpointing', 'warning', (run) => {
    const requested = run.written.distribution?.parameters?.sm_activation_offloading === true;
    const checkpointing = run.written.training?.activationCheckpointing;
    return when(requested && checkpointing === 'none', 'training.activationCheckpointing', {
      must: 'must be selective or full with sm_activation_offloading',
      fix: 'use full, or switch offloading off',
    });
  }),
  smpV2Rule('smp-v2/offload-conflict', 'error', (run) => {
    const ours = run.written.training?.activationOffload;
    const theirs = run.written.distribution?.parameters?.sm_activation_offloading;
    return when(
      typeof ours === 'boolean' && typeof theirs === 'boolean' && ours !== theirs,
      parameterPath('sm_activation_offloading'),
      {
        must: `must agree with training.activationOffload ${ours}`,
        fix: 'write one of the two',
      },
    );
  }),
];
