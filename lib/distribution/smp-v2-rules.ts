import { SMP_V2_INSTANCE_TYPES } from '../catalog/smddp';
import { SMP_REGIONS, SMP_RELEASES } from '../catalog/smp-releases';
import { orList } from '../spec/issue';
import { worldSize } from '../spec/resolve-run';
import { type Finding, type Rule, rulesAbout, when } from '../spec/rule';
import type { RunSpec } from '../spec/run-spec';
import { compareVersions } from './image-version';
import { divisorsUpTo, type ParameterKind, parameterFindings, parameterPath } from './parameters';
import { degree, instanceTypePath, trainingInstanceTypes } from './strategy';

const REFERENCE = 'https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-model-parallel-v2-reference.html';
const RELEASE_NOTES = 'https://docs.aws.amazon.com/sagemaker/latest/dg/model-parallel-release-notes.html';

/** The whole set; the reference page says that it is complete. */
const PARAMETERS: Readonly<Record<string, ParameterKind>> = {
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

/** The degrees as given; 0 or absent means what the reference page says. */
export function smpV2Degrees(run: RunSpec) {
  return {
    shard: degree(run, 'hybrid_shard_degree', 0),
    tensor: degree(run, 'tensor_parallel_degree', 1),
    context: degree(run, 'context_parallel_degree', 1),
    expert: degree(run, 'expert_parallel_degree', 1),
    world: worldSize(run),
  };
}

const rule = rulesAbout((run) => (run.distribution.library === 'smp-v2' ? smpV2Degrees(run) : undefined));

function divides(run: RunSpec, key: 'tensor' | 'context' | 'expert'): Finding[] {
  const all = smpV2Degrees(run);
  if (all[key] <= 1 || all.world % all[key] === 0) return [];
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

function product(run: RunSpec): Finding[] {
  const { shard, tensor, expert, world } = smpV2Degrees(run);
  const single = (['tensor', 'context', 'expert'] as const).flatMap((key) => divides(run, key));
  if (single.length > 0) return single;
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

/** The lowest PyTorch version of an SMP image that has a feature. */
function needsRelease(run: RunSpec, parameter: string, pytorch: string, smp: string): Finding[] {
  const version = run.image.kind === 'smp' ? run.image.version : undefined;
  if (degree(run, parameter, 1) <= 1 || !version || compareVersions(version, pytorch) >= 0) return [];
  return [
    {
      path: parameterPath(parameter),
      must: `must have SMP ${smp} (the image of PyTorch ${pytorch}) or newer`,
      got: `image.version ${version}`,
      fix: `use image.version "2.5.1"`,
    },
  ];
}

export const SMP_V2_RULES: readonly Rule[] = [
  rule({
    id: 'smp-v2/parameters',
    level: 'error',
    isLocal: true,
    what: 'distribution.parameters holds only the nine parameters of SMP v2, each of its own type and range.',
    why: 'No SDK checks them: an unknown key, or one of SMP v1, is passed on and silently ignored.',
    source: REFERENCE,
    find: (run) =>
      parameterFindings(run.distribution.parameters, PARAMETERS, {
        library: 'SMP v2',
        unknownFix: (key) =>
          /pipeline|partition|microbatch/.test(key)
            ? 'remove it: SMP v2 has no pipeline parallelism; smp-v1 and megatron have'
            : `use ${orList(Object.keys(PARAMETERS))}, or set it in the script`,
      }),
  }),
  rule({
    id: 'smp-v2/degrees',
    level: 'error',
    what: 'The degrees divide the world size: world % (SD x TP x EP) = 0, and TP, CP and EP each divide it.',
    why: 'The library cannot build its process groups otherwise; the job ends after its instances have started.',
    source: `${REFERENCE} and aws/sagemaker-hyperpod-training-adapter-for-nemo conf/config_schemas.py`,
    find: product,
  }),
  rule({
    id: 'smp-v2/context-within-shard',
    level: 'error',
    what: 'context_parallel_degree is at most hybrid_shard_degree.',
    why: 'Context parallel ranks are taken from the shard group.',
    source: REFERENCE,
    find: (_run, { context, shard }) => {
      return when(context > 1 && shard !== 0 && context > shard, {
        path: parameterPath('context_parallel_degree'),
        must: `must be at most hybrid_shard_degree ${shard}`,
        got: context,
        fix: `lower it, or raise hybrid_shard_degree to ${context} or more`,
      });
    },
  }),
  rule({
    id: 'smp-v2/context-sequence',
    level: 'error',
    what: 'The sequence length is a multiple of 2 x context_parallel_degree.',
    why: 'Sequences are split into 2 x CP load-balanced pieces.',
    source: 'aws/amazon-sagemaker-examples sm-distributed_model_parallel_v2/shared-scripts/train_lib.py',
    find: (run, { context }) => {
      const length = run.training.sequenceLength;
      if (context <= 1 || !length || length % (2 * context) === 0) return [];
      const nearest = Math.ceil(length / (2 * context)) * 2 * context;
      return [
        {
          path: 'training.sequenceLength',
          must: `must be a multiple of ${2 * context} (2 x context_parallel_degree)`,
          got: length,
          fix: `use ${nearest}`,
        },
      ];
    },
  }),
  rule({
    id: 'smp-v2/expert-with-tensor',
    level: 'warning',
    what: 'Expert and tensor parallelism are not on together.',
    why: "AWS's guide forbids it; AWS's own adapter for NeMo allows it.",
    source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/model-parallel-core-features-v2-expert-parallelism.html',
    find: (_run, { expert, tensor }) => {
      return when(expert > 1 && tensor > 1, {
        path: parameterPath('expert_parallel_degree'),
        must: 'must be 1 with tensor parallelism',
        got: `${expert} with TP ${tensor}`,
        fix: 'use one of the two',
      });
    },
  }),
  rule({
    id: 'smp-v2/instance-type',
    level: 'error',
    what: 'SMP v2 runs on ml.p4d.24xlarge, ml.p4de.24xlarge, ml.p5.48xlarge and ml.p5e.48xlarge only.',
    why: 'The library supports no other type, and no SDK refuses one.',
    source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-model-parallel-support-v2.html',
    find: (run) =>
      trainingInstanceTypes(run)
        .filter((type) => type !== '' && !SMP_V2_INSTANCE_TYPES.includes(type))
        .map((type) => ({
          path: instanceTypePath(run),
          must: `must be one of ${orList(SMP_V2_INSTANCE_TYPES)} for smp-v2`,
          got: type,
          fix: 'use one of them, or distribution.library fsdp',
        })),
  }),
  rule({
    id: 'smp-v2/image',
    level: 'error',
    what: 'SMP v2 runs in its own images (image.kind smp), in an image of yours, or in an environment image with SMP inside.',
    why: 'The PyTorch and Hugging Face images carry no torch.sagemaker; the Hugging Face estimator drops mp_parameters.',
    source: RELEASE_NOTES,
    find: (run) =>
      when(run.image.kind === 'dlc' || run.image.kind === 'huggingface', {
        path: 'image.kind',
        must: 'must be smp, uri or environment for smp-v2',
        got: run.image.kind,
        fix: 'use kind smp, version "2.5.1"',
      }),
  }),
  rule({
    id: 'smp-v2/region',
    level: 'error',
    what: 'The SMP images exist in 17 regions.',
    why: 'Elsewhere the image cannot be pulled.',
    source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-model-parallel-support-v2.html',
    find: (run, _degrees, context) => {
      const region = context.region ?? context.descriptor?.region;
      return when(run.image.kind === 'smp' && !!region && !SMP_REGIONS.includes(region), {
        path: 'image.kind',
        must: `must be available in the region; SMP images are in ${orList([...SMP_REGIONS])}`,
        got: region,
        fix: 'use one of these regions, or another library',
      });
    },
  }),
  rule({
    id: 'smp-v2/launcher',
    level: 'error',
    what: 'SMP v2 starts under torchrun.',
    why: 'MPI is the launcher of SMP v1.',
    source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/model-parallel-use-api-v2.html',
    find: (run) =>
      when(run.distribution.launcher !== 'torchrun', {
        path: 'distribution.launcher',
        must: 'must be torchrun for smp-v2',
        got: run.distribution.launcher,
        fix: 'use torchrun',
      }),
  }),
  rule({
    id: 'smp-v2/context-release',
    level: 'error',
    what: 'Context parallelism needs SMP 2.5.0, expert parallelism SMP 2.3.0.',
    why: 'Older images do not know the parameter.',
    source: RELEASE_NOTES,
    find: (run) => [
      ...needsRelease(run, 'context_parallel_degree', '2.3.1', '2.5.0'),
      ...needsRelease(run, 'expert_parallel_degree', '2.2.0', '2.3.0'),
    ],
  }),
  rule({
    id: 'smp-v2/offload-release',
    level: 'warning',
    what: 'SMP activation offloading is off on SMP 2.2.0.',
    why: 'It does not work there; native offloading does. The same image tag has carried 2.2.0, 2.3.0 and 2.3.1.',
    source: RELEASE_NOTES,
    find: (run) =>
      when(
        run.image.kind === 'smp' &&
          run.image.version === '2.2.0' &&
          run.distribution.parameters.sm_activation_offloading !== false &&
          run.training.activationOffload,
        {
          path: parameterPath('sm_activation_offloading'),
          must: 'must be false on SMP 2.2.0',
          got: run.distribution.parameters.sm_activation_offloading ?? 'true (default)',
          fix: 'set it to false, or use image.version "2.5.1"',
        },
      ),
  }),
  rule({
    id: 'smp-v2/offload-without-checkpointing',
    level: 'warning',
    what: 'Activation offloading goes with activation checkpointing.',
    why: 'It offloads the inputs of checkpointed layers; without checkpointing it does nothing.',
    source:
      'https://docs.aws.amazon.com/sagemaker/latest/dg/model-parallel-core-features-v2-pytorch-activation-offloading.html',
    find: (run) => {
      const asked = run.written.distribution?.parameters?.sm_activation_offloading === true;
      const checkpointing = run.written.training?.activationCheckpointing;
      return when(asked && checkpointing === 'none', {
        path: 'training.activationCheckpointing',
        must: 'must be selective or full with sm_activation_offloading',
        got: 'none',
        fix: 'use full, or switch offloading off',
      });
    },
  }),
  rule({
    id: 'smp-v2/offload-conflict',
    level: 'error',
    what: 'training.activationOffload and sm_activation_offloading mean the same where both are written.',
    why: 'One of them would be silently ignored.',
    source: REFERENCE,
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
  rule({
    id: 'smp-v2/smddp-no-shard',
    level: 'error',
    what: 'With tensor parallelism and hybrid_shard_degree 1 the backend is nccl.',
    why: 'SMDDP does not serve that process group.',
    source: RELEASE_NOTES,
    find: (run, { shard, tensor }) => {
      return when(run.distribution.collectives === 'smddp' && tensor > 1 && shard === 1, {
        path: 'distribution.collectives',
        must: 'must be nccl with tensor parallelism and hybrid_shard_degree 1',
        got: 'smddp',
        fix: 'use nccl, or a higher shard degree',
      });
    },
  }),
  rule({
    id: 'smp-v2/tensor-within-node',
    level: 'warning',
    mayAcknowledge: true,
    what: 'Tensor parallelism stays inside one instance.',
    why: 'Every layer then crosses the network; AWS says so for SMP v1 and uses at most 4 in its own v2 configurations.',
    source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/model-parallel-core-features-v2-tensor-parallelism.html',
    find: (run, { tensor }) => {
      const gpus = run.distribution.processesPerHost;
      return when(tensor > gpus, {
        path: parameterPath('tensor_parallel_degree'),
        must: `must be at most the ${gpus} GPUs of one instance`,
        got: tensor,
        fix: `use ${orList(divisorsUpTo(gpus, gpus))}`,
      });
    },
  }),
  rule({
    id: 'smp-v2/instance-groups',
    level: 'error',
    what: 'SMP v2 under the toolkit contract runs on one kind of instance.',
    why: 'The SageMaker Python SDK refuses instance groups under torch_distributed.',
    source: 'aws/sagemaker-python-sdk v2.257.6 estimator.py _distribution_configuration',
    find: (run) =>
      when(run.distribution.contract === 'toolkit' && run.compute.instanceGroups.length > 0, {
        path: 'compute.instanceGroups',
        must: 'must be absent for smp-v2 under the toolkit contract',
        got: run.compute.instanceGroups.map((g) => g.name),
        fix: 'use compute.instanceType, or distribution.contract entrypoint',
      }),
  }),
  rule({
    id: 'smp-v2/frozen',
    level: 'warning',
    mayAcknowledge: true,
    what: 'SMP v2 is pinned to its last release.',
    why: `The last release is ${SMP_RELEASES[0]?.smp} of ${SMP_RELEASES[0]?.date} (PyTorch ${SMP_RELEASES[0]?.pytorch}); later instance types were never added. FSDP on torchrun is the maintained way.`,
    source: RELEASE_NOTES,
    find: () => [
      {
        path: 'distribution.library',
        must: 'must be a library that still gets releases',
        got: 'smp-v2',
        fix: 'use fsdp for new work, or acknowledge smp-v2/frozen',
      },
    ],
  }),
];
