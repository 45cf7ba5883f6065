import { SMDDP_INSTANCE_TYPES, SMP_REGIONS, SMP_V2_INSTANCE_TYPES } from '../catalog/images/smddp';
import { modelParameters } from '../catalog/model/parameters';
import { orList } from '../config/issue';
import { hostCount, trainingGroupsOf, worldSize } from '../config/resolve-run';
import { type Finding, mustBe, type Rule, regionOf, rulesAbout, when } from '../config/rule';
import type { RunSpec } from '../config/run-spec';
import { fsdpDegrees } from './fsdp';
import { compareVersions } from './image-version';
import {
  disagrees,
  divisorsUpTo,
  type ParameterKind,
  parameterFindings,
  parameterPath,
  tensorAcrossHosts,
  unevenSequence,
} from './parameters';
import { pythonJson } from './python-json';
import { degree, otherTypes, type ParallelLayout, sdkInstanceType, strategy, trainingInstanceTypes } from './strategy';

/**
 * All parameters of SMP v2; the reference page says that the list is complete:
 * https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-model-parallel-v2-reference.html
 */
const SMP_V2_PARAMETERS: Readonly<Record<string, ParameterKind>> = {
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
function smpV2Degrees(run: RunSpec) {
  return {
    shard: degree(run, 'hybrid_shard_degree', 0),
    ...fsdpDegrees(run),
    world: worldSize(run),
  };
}

const smpV2Rule = rulesAbout((run) => (run.distribution.library === 'smp-v2' ? smpV2Degrees(run) : undefined));

const smpImageVersion = ({ image }: RunSpec) => (image.kind === 'smp' ? image.version : undefined);

/** Finding when the SMP image is older than the lowest PyTorch version with a feature. */
function needsRelease(run: RunSpec, parameter: string, pytorch: string, smp: string): Finding[] {
  const version = smpImageVersion(run);
  const isOlder = degree(run, parameter, 1) > 1 && version !== undefined && compareVersions(version, pytorch) < 0;
  return when(isOlder, parameterPath(parameter), {
    must: `must have SMP ${smp} (the image of PyTorch ${pytorch}) or newer`,
    got: `image.version ${version}`,
    fix: `use image.version "2.5.1"`,
  });
}

/** From this size on, the initialised weights of all ranks no longer fit into host memory. */
const DELAYED_INIT_PARAMETERS = 60e9;
/** Thresholds, in tokens, for a sequence that AWS calls long, and for a batch that harms convergence. */
const LONG_SEQUENCE = 8192;
const LARGE_BATCH_TOKENS = 4e6;

/** Rules of SMP v2, in the order of their page. The last ones are AWS's best practices in AWS's order, which are informational. */
const SMP_V2_RULES: readonly Rule[] = [
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
    const uneven = (['tensor', 'context', 'expert'] as const).filter((key) => world % degrees[key] !== 0);
    if (uneven.length > 0)
      return uneven.map((key) => ({
        path: parameterPath(`${key}_parallel_degree`),
        must: `must divide the world size ${world}`,
        fix: `use ${orList(divisorsUpTo(world, 64))}`,
      }));
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
  smpV2Rule('smp-v2/instance-type', 'error', (run) =>
    otherTypes(run, SMP_V2_INSTANCE_TYPES, 'smp-v2', 'use one of them, or distribution.library fsdp'),
  ),
  smpV2Rule('smp-v2/image', 'error', (run) =>
    when(run.image.kind === 'dlc' || run.image.kind === 'huggingface', 'image.kind', {
      must: 'must be smp, uri or environment for smp-v2',
      fix: 'use kind smp, version "2.5.1"',
    }),
  ),
  smpV2Rule('smp-v2/region', 'error', (run, _degrees, context) => {
    const region = regionOf(context);
    return when(run.image.kind === 'smp' && !!region && !SMP_REGIONS.includes(region), 'image.kind', {
      must: `must be available in the region; SMP images are in ${orList([...SMP_REGIONS])}`,
      got: region,
      fix: 'use one of these regions, or another library',
    });
  }),
  smpV2Rule('smp-v2/launcher', 'error', (run) => mustBe(run, 'launcher', 'torchrun', 'for smp-v2')),
  smpV2Rule('smp-v2/context-release', 'error', (run) => [
    ...needsRelease(run, 'context_parallel_degree', '2.3.1', '2.5.0'),
    ...needsRelease(run, 'expert_parallel_degree', '2.2.0', '2.3.0'),
  ]),
  smpV2Rule('smp-v2/fp8-release', 'error', (run) => {
    const version = smpImageVersion(run);
    const isBefore = run.training.precision === 'fp8' && version !== undefined && compareVersions(version, '2.2.0') < 0;
    return when(isBefore, 'training.precision', {
      must: 'must be bf16 before SMP 2.2.0 (the image of PyTorch 2.2.0)',
      got: `fp8 with image.version ${version}`,
      fix: 'use bf16, or image.version "2.5.1"',
    });
  }),
  smpV2Rule('smp-v2/offload-release', 'warning', (run) => {
    const isBroken =
      run.image.kind === 'smp' &&
      run.image.version === '2.2.0' &&
      run.distribution.parameters.sm_activation_offloading !== false &&
      (run.training.activationOffload || run.distribution.parameters.sm_activation_offloading === true);
    return when(isBroken, parameterPath('sm_activation_offloading'), {
      must: 'must be false on SMP 2.2.0',
      got: run.distribution.parameters.sm_activation_offloading ?? 'true (default)',
      fix: 'set it to false, or use image.version "2.5.1"',
    });
  }),
  smpV2Rule('smp-v2/offload-without-checkpointing', 'warning', (run) => {
    const requested = run.written.distribution?.parameters?.sm_activation_offloading === true;
    const checkpointing = run.written.training?.activationCheckpointing;
    return when(requested && checkpointing === 'none', 'training.activationCheckpointing', {
      must: 'must be selective or full with sm_activation_offloading',
      fix: 'use full, or switch offloading off',
    });
  }),
  smpV2Rule('smp-v2/offload-conflict', 'error', (run) => {
    const theirs = run.written.distribution?.parameters?.sm_activation_offloading;
    if (typeof theirs !== 'boolean') return [];
    return disagrees(run, 'activationOffload', parameterPath('sm_activation_offloading'), theirs);
  }),
  smpV2Rule('smp-v2/smddp-no-shard', 'error', (run, { shard, tensor }) =>
    when(run.distribution.collectives === 'smddp' && tensor > 1 && shard === 1, 'distribution.collectives', {
      must: 'must be nccl with tensor parallelism and hybrid_shard_degree 1',
      fix: 'use nccl, or a higher shard degree',
    }),
  ),
  smpV2Rule('smp-v2/tensor-within-node', 'warning, may acknowledge', (run, { tensor }) =>
    tensorAcrossHosts(run, tensor, parameterPath('tensor_parallel_degree')),
  ),
  smpV2Rule('smp-v2/instance-groups', 'error', (run) =>
    when(run.distribution.contract === 'toolkit' && run.compute.instanceGroups.length > 0, 'compute.instanceGroups', {
      must: 'must be absent for smp-v2 under the toolkit contract',
      got: run.compute.instanceGroups.map((g) => g.name),
      fix: 'use compute.instanceType, or distribution.contract entrypoint',
    }),
  ),
  smpV2Rule('smp-v2/frozen', 'warning, may acknowledge', () => ({
    path: 'distribution.library',
    must: 'must be a library that still gets releases',
    fix: 'use fsdp for new work, or acknowledge smp-v2/frozen',
  })),
  smpV2Rule('smp-v2/advice-precision', 'info, may acknowledge', ({ training: { precision } }) =>
    when(precision === 'fp32' || precision === 'fp16', 'training.precision', {
      must: 'is best bf16',
      fix: 'use bf16',
    }),
  ),
  smpV2Rule('smp-v2/advice-collectives', 'info, may acknowledge', (run, { shard, tensor }) => {
    const served = trainingInstanceTypes(run).every((type) => SMDDP_INSTANCE_TYPES.includes(type));
    const excluded = shard === 1 && tensor > 1;
    const isServed =
      served && hostCount(trainingGroupsOf(run)) > 1 && !excluded && run.distribution.collectives === 'nccl';
    return when(isServed, 'distribution.collectives', {
      must: 'is best smddp on several ml.p4d or ml.p4de',
      fix: 'try smddp, with init_process_group("smddp") before torch.sagemaker.init()',
    });
  }),
  smpV2Rule('smp-v2/advice-delayed-init', 'info, may acknowledge', (run) => {
    const parameters = run.model ? modelParameters(run.model.architecture) : 0;
    return when(!run.code.builtin && parameters > DELAYED_INIT_PARAMETERS, 'model', {
      must: 'is best initialised with delay (DelayedParamIniter) in the script',
      got: `${Math.round(parameters / 1e9)} billion parameters`,
      fix: 'build the model on the meta device',
    });
  }),
  smpV2Rule('smp-v2/advice-checkpointing', 'info, may acknowledge', ({ written }) =>
    when(written.training?.activationCheckpointing === 'none', 'training.activationCheckpointing', {
      must: 'is best selective or full with SMP',
      fix: 'use full',
    }),
  ),
  smpV2Rule('smp-v2/advice-shard-degree', 'info, may acknowledge', (run, { shard, tensor, expert, world }) => {
    const offloads = run.training.activationOffload || run.distribution.parameters.sm_activation_offloading === true;
    const isWhole = world > run.distribution.processesPerHost && Math.max(1, shard) * tensor * expert === world;
    return when(isWhole && !offloads, parameterPath('hybrid_shard_degree'), {
      must: 'is best the lowest degree that fits',
      got: `${shard}, every rank`,
      fix: 'try a lower one, or sm_activation_offloading first',
    });
  }),
  smpV2Rule('smp-v2/advice-tensor', 'info, may acknowledge', ({ training }, { tensor, context, world }) => {
    const { sequenceLength, microBatchSize = 1 } = training;
    const without = (world / context) * microBatchSize * (sequenceLength ?? 0);
    const isNeeded = sequenceLength === undefined || sequenceLength >= LONG_SEQUENCE || without > LARGE_BATCH_TOKENS;
    return when(tensor > 1 && !isNeeded, parameterPath('tensor_parallel_degree'), {
      must: 'is best 1 below a context of 8192 and a batch of 4 million tokens',
      fix: 'use 1 if the model fits without it',
    });
  }),
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
