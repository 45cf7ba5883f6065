import { orList } from '../../config/issue';
import { type Finding, guide, type Rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { divisorsUpTo, parameterFindings, parameterPath, unevenSequence } from '../parameters';
import { SMP_V2_PARAMETERS, SMP_V2_REFERENCE, SMP_V2_RELEASE_NOTES, type smpV2Degrees, smpV2Rule } from './parameters';

type Degrees = ReturnType<typeof smpV2Degrees>;

function divides(all: Degrees, key: 'tensor' | 'context' | 'expert'): Finding[] {
  if (all.world % all[key] === 0) return [];
  const fix = `use ${orList(divisorsUpTo(all.world, 64))}`;
  return [
    {
      path: parameterPath(`${key}_parallel_degree`),
      must: `must divide the world size ${all.world}`,
      got: all[key],
      fix,
    },
  ];
}

function product(_run: RunSpec, degrees: Degrees): Finding[] {
  const { shard, tensor, context, expert, world } = degrees;
  // smp-v2/parameters reports these values.
  if (Math.min(tensor, context, expert) < 1) return [];
  const single = (['tensor', 'context', 'expert'] as const).flatMap((key) => divides(degrees, key));
  if (single.length > 0) return single;
  if (world % (tensor * context) !== 0)
    return [
      {
        path: parameterPath('context_parallel_degree'),
        must: `must make tensor_parallel_degree x context_parallel_degree a divisor of the world size ${world}`,
        got: `${tensor} x ${context} = ${tensor * context}`,
        fix: `use ${orList(divisorsUpTo(world / tensor, 64))}`,
      },
    ];
  const size = Math.max(1, shard) * tensor * expert;
  if (shard <= world && world % size === 0) return [];
  const choices = divisorsUpTo(world / (tensor * expert), 1024).slice(-6);
  const must = `must make hybrid_shard_degree x tensor_parallel_degree x expert_parallel_degree a divisor of the world size ${world}`;
  return [
    {
      path: parameterPath('hybrid_shard_degree'),
      must,
      got: `${Math.max(1, shard)} x ${tensor} x ${expert} = ${size}`,
      fix: `use a shard degree of ${orList(choices)}, or another instance count`,
    },
  ];
}

/** Rules about the degrees of SMP v2 in relation to each other and to the cluster. */
export const SMP_V2_DEGREE_RULES: readonly Rule[] = [
  smpV2Rule({
    id: 'smp-v2/parameters',
    level: 'error',
    isLocal: true,
    what: 'distribution.parameters contains only the nine SMP v2 parameters, each with a valid type and range.',
    why: 'No SDK checks them: an unknown key, or one of SMP v1, is passed on and silently ignored.',
    source: SMP_V2_REFERENCE,
    find: (run) =>
      parameterFindings(run.distribution.parameters, SMP_V2_PARAMETERS, {
        library: 'SMP v2',
        unknownFix: (key) =>
          /pipeline|partition|microbatch/.test(key)
            ? 'remove it: SMP v2 has no pipeline parallelism; smp-v1 and megatron have'
            : `use ${orList(Object.keys(SMP_V2_PARAMETERS))}, or set it in the script`,
      }),
  }),
  smpV2Rule({
    id: 'smp-v2/degrees',
    level: 'error',
    what: 'The degrees divide the world size: world % (SD x TP x EP) = 0, world % (TP x CP) = 0, and TP, CP and EP each divide it.',
    why: 'Otherwise the library cannot create its process groups, and the job fails after the instances have started.',
    source: `${SMP_V2_REFERENCE} and aws/sagemaker-hyperpod-training-adapter-for-nemo conf/config_schemas.py`,
    find: product,
  }),
  smpV2Rule({
    id: 'smp-v2/context-within-shard',
    level: 'error',
    what: 'context_parallel_degree is at most hybrid_shard_degree.',
    why: 'Context parallel ranks are taken from the shard group.',
    source: SMP_V2_REFERENCE,
    find: (_run, { context, shard }) =>
      when(context > 1 && shard !== 0 && context > shard, {
        path: parameterPath('context_parallel_degree'),
        must: `must be at most hybrid_shard_degree ${shard}`,
        got: context,
        fix: `lower it, or raise hybrid_shard_degree to ${context} or more`,
      }),
  }),
  smpV2Rule({
    id: 'smp-v2/context-sequence',
    level: 'error',
    what: 'The sequence length is a multiple of 2 x context_parallel_degree.',
    why: 'Sequences are split into 2 x CP load-balanced pieces.',
    source: 'aws/amazon-sagemaker-examples sm-distributed_model_parallel_v2/shared-scripts/train_lib.py',
    find: (run, { context }) => unevenSequence(run, context),
  }),
  smpV2Rule({
    id: 'smp-v2/expert-with-tensor',
    level: 'warning',
    what: 'Expert and tensor parallelism are not enabled together.',
    why: 'The AWS guide excludes it; the AWS adapter for NeMo allows it.',
    source: guide('model-parallel-core-features-v2-expert-parallelism'),
    find: (_run, { expert, tensor }) =>
      when(expert > 1 && tensor > 1, {
        path: parameterPath('expert_parallel_degree'),
        must: 'must be 1 with tensor parallelism',
        got: `${expert} with TP ${tensor}`,
        fix: 'use one of the two',
      }),
  }),
];

/** Rules about activation offloading of SMP v2. */
export const SMP_V2_OFFLOAD_RULES: readonly Rule[] = [
  smpV2Rule({
    id: 'smp-v2/offload-release',
    level: 'warning',
    what: 'SMP activation offloading is disabled with SMP 2.2.0.',
    why: 'It does not work with this release; native offloading does. The same image tag has contained 2.2.0, 2.3.0 and 2.3.1.',
    source: SMP_V2_RELEASE_NOTES,
    find: (run) =>
      when(
        run.image.kind === 'smp' &&
          run.image.version === '2.2.0' &&
          run.distribution.parameters.sm_activation_offloading !== false &&
          (run.training.activationOffload || run.distribution.parameters.sm_activation_offloading === true),
        {
          path: parameterPath('sm_activation_offloading'),
          must: 'must be false on SMP 2.2.0',
          got: run.distribution.parameters.sm_activation_offloading ?? 'true (default)',
          fix: 'set it to false, or use image.version "2.5.1"',
        },
      ),
  }),
  smpV2Rule({
    id: 'smp-v2/offload-without-checkpointing',
    level: 'warning',
    what: 'Activation offloading requires activation checkpointing.',
    why: 'Offloading moves the inputs of checkpointed layers; without checkpointing it has no effect.',
    source: guide('model-parallel-core-features-v2-pytorch-activation-offloading'),
    find: (run) => {
      const requested = run.written.distribution?.parameters?.sm_activation_offloading === true;
      const checkpointing = run.written.training?.activationCheckpointing;
      return when(requested && checkpointing === 'none', {
        path: 'training.activationCheckpointing',
        must: 'must be selective or full with sm_activation_offloading',
        got: 'none',
        fix: 'use full, or switch offloading off',
      });
    },
  }),
  smpV2Rule({
    id: 'smp-v2/offload-conflict',
    level: 'error',
    what: 'training.activationOffload and sm_activation_offloading have the same value if both are set.',
    why: 'One of them would be silently ignored.',
    source: SMP_V2_REFERENCE,
    find: (run) => {
      const ours = run.written.training?.activationOffload;
      const theirs = run.written.distribution?.parameters?.sm_activation_offloading;
      return when(typeof ours === 'boolean' && typeof theirs === 'boolean' && ours !== theirs, {
        path: parameterPath('sm_activation_offloading'),
        must: `must agree with training.activationOffload ${ours}`,
        got: theirs,
        fix: 'write one of the two',
      });
    },
  }),
];
