import { SMP_V1_BY_PYTORCH, SMP_V1_INSTANCE_TYPES } from '../../catalog/images/smddp';
import { findInstanceType } from '../../catalog/instances/instances';
import { orList } from '../../config/issue';
import { mustBe, type Rule, when } from '../../config/rule';
import { compareVersions, pytorchOfImage } from '../image-version';
import { bf16Findings, disagrees, divisorsUpTo, parameterFindings, parameterPath } from '../parameters';
import { degree, otherTypes } from '../strategy';
import { SMP_V1_PARAMETERS, SMP_V1_SINCE, smpV1Rule } from './parameters';

/** Rules about the platform of SMP v1, its degrees, its options, and its microbatches. */
export const SMP_V1_REQUIREMENTS: readonly Rule[] = [
  smpV1Rule('smp-v1/parameters', 'error, local', (run) =>
    parameterFindings(run.distribution.parameters, SMP_V1_PARAMETERS, { library: 'SMP v1' }),
  ),
  smpV1Rule('smp-v1/launcher', 'error', (run) => [
    ...mustBe(run, 'launcher', 'mpi', 'for smp-v1'),
    ...mustBe(run, 'contract', 'toolkit', 'for smp-v1'),
  ]),
  smpV1Rule('smp-v1/collectives', 'error', (run) =>
    when(run.distribution.collectives === 'smddp', 'distribution.collectives', {
      must: 'must not be smddp with smp-v1',
      fix: 'leave it out',
    }),
  ),
  smpV1Rule('smp-v1/instance-type', 'error', (run) =>
    otherTypes(run, SMP_V1_INSTANCE_TYPES, 'smp-v1', 'use one of them, or another library'),
  ),
  smpV1Rule('smp-v1/pytorch', 'error', (run) => {
    const version = pytorchOfImage(run);
    const choices = orList(Object.keys(SMP_V1_BY_PYTORCH));
    const isWithout = run.image.kind !== 'smp' && version !== undefined && !(version in SMP_V1_BY_PYTORCH);
    return [
      ...when(run.image.kind === 'smp', 'image.kind', {
        must: 'must be dlc, huggingface, uri or environment for smp-v1',
        fix: 'use kind dlc, version "1.13.1"; the smp images carry SMP v2',
      }),
      ...when(isWithout, run.image.kind === 'uri' ? 'image.uri' : 'image.version', {
        must: `must carry PyTorch ${choices} for smp-v1`,
        got: run.image.version ?? version,
        fix: 'use kind dlc, version "1.13.1" or "2.0.0"',
      }),
    ];
  }),
  smpV1Rule('smp-v1/release', 'error', (run) => {
    const pytorch = pytorchOfImage(run) ?? '';
    const release = SMP_V1_BY_PYTORCH[pytorch];
    if (release === undefined) return [];
    return Object.entries(run.distribution.parameters).flatMap(([key, value]) => {
      const since = SMP_V1_SINCE[key];
      if (since === undefined || value === false || value === 1 || compareVersions(release, since) >= 0) return [];
      return {
        path: parameterPath(key),
        must: `must have SMP v1 ${since} or newer; the image of PyTorch ${pytorch} carries ${release}`,
        fix: 'use kind dlc, version "1.13.1" or "2.0.0"',
      };
    });
  }),
  smpV1Rule('smp-v1/partitions-twice', 'error', (run, { has }) => {
    const differs =
      has('partitions') &&
      has('pipeline_parallel_degree') &&
      run.distribution.parameters.partitions !== run.distribution.parameters.pipeline_parallel_degree;
    return when(differs, parameterPath('partitions'), {
      must: `must equal pipeline_parallel_degree ${run.distribution.parameters.pipeline_parallel_degree}`,
      fix: 'write pipeline_parallel_degree alone',
    });
  }),
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
  smpV1Rule('smp-v1/precision', 'error', (run, { shard, isOn }) => {
    const written = run.written.training?.precision;
    const theirs = isOn('bf16') ? 'bf16' : 'fp16';
    return [
      ...when(isOn('bf16') && shard <= 1, parameterPath('bf16'), {
        must: 'must be used with sharded_data_parallel_degree above 1',
        fix: 'use fp16: true, or shard',
      }),
      ...(isOn('bf16') ? bf16Findings(run, 'bf16') : []),
      ...when(isOn('bf16') && isOn('fp16'), parameterPath('fp16'), {
        must: 'must not be on together with bf16',
        fix: 'remove one of the two',
      }),
      ...when(written !== undefined && isOn(theirs) && written !== theirs, parameterPath(theirs), {
        must: `must agree with training.precision ${written}`,
        fix: 'write one of the two',
      }),
    ];
  }),
  smpV1Rule('smp-v1/partitioning', 'error', (run, { pipeline, has }) => {
    const manual = run.distribution.parameters.auto_partition === false;
    const chosen = run.distribution.parameters.default_partition;
    return [
      ...when(manual && !has('default_partition'), parameterPath('default_partition'), {
        must: 'must be given with auto_partition false',
        fix: 'add default_partition: 0',
      }),
      ...when(typeof chosen === 'number' && chosen >= pipeline, parameterPath('default_partition'), {
        must: `must be below the ${pipeline} partitions`,
        fix: `use 0 to ${pipeline - 1}`,
      }),
    ];
  }),
  smpV1Rule('smp-v1/ddp-options', 'error', (_run, { has, isOn }) => [
    ...['ddp_port', 'ddp_dist_backend'].flatMap((key) =>
      when(has(key) && !isOn('ddp'), parameterPath(key), {
        must: 'must be used with ddp: true',
        fix: 'add ddp: true',
      }),
    ),
    ...when(isOn('ddp') && isOn('horovod'), parameterPath('horovod'), { must: 'must not be on together with ddp' }),
  ]),
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
      ...disagrees(run, 'activationOffload', parameterPath('offload_activations'), true).map((found) => ({
        ...found,
        level: 'error' as const,
      })),
    ];
  }),
];
