import { findInstanceType } from '../catalog/instances';
import { SMP_V1_BY_PYTORCH, SMP_V1_INSTANCE_TYPES } from '../catalog/smddp';
import { orList } from '../spec/issue';
import { worldSize } from '../spec/resolve-run';
import { type Rule, rulesAbout, when } from '../spec/rule';
import type { RunSpec } from '../spec/run-spec';
import { compareVersions, pytorchOfImage } from './image-version';
import { divisorsUpTo, type ParameterKind, parameterFindings, parameterPath } from './parameters';
import { degree, instanceTypePath, trainingInstanceTypes } from './strategy';

const GUIDE = 'https://docs.aws.amazon.com/sagemaker/latest/dg/';
const API = 'sagemaker.readthedocs.io v2.199.0 api/training/smd_model_parallel_general';
const SDP = `${GUIDE}model-parallel-extended-features-pytorch-sharded-data-parallelism.html`;

const INT = { type: 'int', min: 1 } as const;
const BOOL = { type: 'bool' } as const;

const PARAMETERS: Readonly<Record<string, ParameterKind>> = {
  pipeline_parallel_degree: INT,
  partitions: INT,
  microbatches: INT,
  active_microbatches: INT,
  pipeline: { type: 'enum', values: ['interleaved', 'simple', '_only_forward'] },
  optimize: { type: 'enum', values: ['memory', 'speed'] },
  placement_strategy: { type: 'enum', values: ['cluster', 'spread'] },
  auto_partition: BOOL,
  default_partition: { type: 'int', min: 0 },
  contiguous: BOOL,
  horovod: BOOL,
  memory_weight: { type: 'number', min: 0, max: 1 },
  ddp: BOOL,
  ddp_dist_backend: { type: 'enum', values: ['auto', 'nccl'] },
  ddp_port: { type: 'int', min: 0 },
  deterministic_server: BOOL,
  offload_activations: BOOL,
  activation_loading_horizon: INT,
  tensor_parallel_degree: INT,
  fp16: BOOL,
  fp16_params: BOOL,
  bf16: BOOL,
  shard_optimizer_state: BOOL,
  prescaled_batch: BOOL,
  skip_tracing: BOOL,
  sharded_data_parallel_degree: INT,
  sdp_reduce_bucket_size: INT,
  sdp_param_persistence_threshold: { type: 'int', min: 0 },
  sdp_max_live_parameters: INT,
  sdp_hierarchical_allgather: BOOL,
  sdp_gradient_clipping: { type: 'number', min: 0 },
  load_partition: BOOL,
  partition_file: { type: 'string' },
};

interface V1 {
  world: number;
  pipeline: number;
  tensor: number;
  shard: number;
  has(key: string): boolean;
  isOn(key: string): boolean;
}

function v1(run: RunSpec): V1 {
  const given = run.distribution.parameters;
  return {
    world: worldSize(run),
    pipeline: degree(run, 'pipeline_parallel_degree', degree(run, 'partitions', 1)),
    tensor: degree(run, 'tensor_parallel_degree', 1),
    shard: degree(run, 'sharded_data_parallel_degree', 1),
    has: (key) => key in given,
    isOn: (key) => given[key] === true,
  };
}

const rule = rulesAbout((run) => (run.distribution.library === 'smp-v1' ? v1(run) : undefined));

export const SMP_V1_RULES: readonly Rule[] = [
  rule({
    id: 'smp-v1/parameters',
    level: 'error',
    isLocal: true,
    what: 'distribution.parameters holds parameters of SMP v1, each of its own type and range.',
    why: 'The SDK checks some of them, the library the others after its instances have started.',
    source: API,
    find: (run) => parameterFindings(run.distribution.parameters, PARAMETERS, { library: 'SMP v1' }),
  }),
  rule({
    id: 'smp-v1/launcher',
    level: 'error',
    what: 'SMP v1 starts under MPI and the toolkit contract.',
    why: 'The library finds its ranks through MPI, its configuration through the toolkit.',
    source: `${GUIDE}model-parallel-sm-sdk.html`,
    find: (run) => [
      ...when(run.distribution.launcher !== 'mpi', {
        path: 'distribution.launcher',
        must: 'must be mpi for smp-v1',
        got: run.distribution.launcher,
        fix: 'use mpi',
      }),
      ...when(run.distribution.contract !== 'toolkit', {
        path: 'distribution.contract',
        must: 'must be toolkit for smp-v1',
        got: run.distribution.contract,
        fix: 'use toolkit',
      }),
    ],
  }),
  rule({
    id: 'smp-v1/collectives',
    level: 'error',
    what: 'Model parallel and data parallel of SageMaker are not used together.',
    why: 'SMP v1 switches SMDDP AllGather on by itself where it can.',
    source: `${GUIDE}model-parallel-sm-sdk.html`,
    find: (run) =>
      when(run.distribution.collectives === 'smddp', {
        path: 'distribution.collectives',
        must: 'must not be smddp with smp-v1',
        got: 'smddp',
        fix: 'leave it out',
      }),
  }),
  rule({
    id: 'smp-v1/instance-type',
    level: 'error',
    what: `SMP v1 runs on ${orList(SMP_V1_INSTANCE_TYPES)}.`,
    why: 'P5 and newer are refused by the SDK and unknown to the library.',
    source: `${GUIDE}distributed-model-parallel-support.html`,
    find: (run) =>
      trainingInstanceTypes(run)
        .filter((type) => type !== '' && !SMP_V1_INSTANCE_TYPES.includes(type))
        .map((type) => ({
          path: instanceTypePath(run),
          must: `must be one of ${orList(SMP_V1_INSTANCE_TYPES)} for smp-v1`,
          got: type,
          fix: 'use one of them, or another library',
        })),
  }),
  rule({
    id: 'smp-v1/pytorch',
    level: 'error',
    what: 'SMP v1 is in images of PyTorch 1.8.1 to 2.0.0.',
    why: 'Later images do not carry it.',
    source: `${GUIDE}distributed-model-parallel-support.html`,
    find: (run) => {
      const version = pytorchOfImage(run);
      const choices = orList(Object.keys(SMP_V1_BY_PYTORCH));
      return [
        ...when(run.image.kind === 'smp', {
          path: 'image.kind',
          must: 'must be dlc, huggingface, uri or environment for smp-v1',
          got: 'smp',
          fix: 'use kind dlc, version "1.13.1"; the smp images carry SMP v2',
        }),
        ...when(run.image.kind !== 'smp' && version !== undefined && !(version in SMP_V1_BY_PYTORCH), {
          path: run.image.kind === 'uri' ? 'image.uri' : 'image.version',
          must: `must carry PyTorch ${choices} for smp-v1`,
          got: run.image.version ?? version,
          fix: 'use kind dlc, version "1.13.1" or "2.0.0"',
        }),
      ];
    },
  }),
  rule({
    id: 'smp-v1/partitions-twice',
    level: 'error',
    what: 'partitions and pipeline_parallel_degree are two names of one parameter.',
    why: 'Two different values contradict each other.',
    source: API,
    find: (run, { has }) =>
      when(
        has('partitions') &&
          has('pipeline_parallel_degree') &&
          run.distribution.parameters.partitions !== run.distribution.parameters.pipeline_parallel_degree,
        {
          path: parameterPath('partitions'),
          must: `must equal pipeline_parallel_degree ${run.distribution.parameters.pipeline_parallel_degree}`,
          got: run.distribution.parameters.partitions,
          fix: 'write pipeline_parallel_degree alone',
        },
      ),
  }),
  rule({
    id: 'smp-v1/degrees',
    level: 'error',
    what: 'pipeline x tensor divides the world size; the sharded data parallel degree divides what is left.',
    why: 'The library cannot build its process groups otherwise.',
    source: `${GUIDE}model-parallel-core-features.html`,
    find: (_run, { world, pipeline, tensor, shard }) => {
      if (world % (pipeline * tensor) !== 0) {
        return [
          {
            path: parameterPath(pipeline > 1 ? 'pipeline_parallel_degree' : 'tensor_parallel_degree'),
            must: `must make pipeline x tensor a divisor of the world size ${world}`,
            got: `${pipeline} x ${tensor}`,
            fix: `use degrees whose product is ${orList(divisorsUpTo(world, 64))}`,
          },
        ];
      }
      const replicas = world / (pipeline * tensor);
      return when(shard > 1 && replicas % shard !== 0, {
        path: parameterPath('sharded_data_parallel_degree'),
        must: `must divide the ${replicas} data-parallel ranks`,
        got: shard,
        fix: `use ${orList(divisorsUpTo(replicas, 1024).slice(-6))}`,
      });
    },
  }),
  rule({
    id: 'smp-v1/tensor-needs-ddp',
    level: 'error',
    what: 'Tensor parallelism and sharded data parallelism need ddp: true.',
    why: 'The default is false; the library stops at start.',
    source: API,
    find: (_run, { tensor, shard, isOn }) =>
      when((tensor > 1 || shard > 1) && !isOn('ddp'), {
        path: parameterPath('ddp'),
        must: `must be true with ${tensor > 1 ? `tensor_parallel_degree ${tensor}` : `sharded_data_parallel_degree ${shard}`}`,
        got: false,
        fix: 'add ddp: true',
      }),
  }),
  rule({
    id: 'smp-v1/tensor-within-node',
    level: 'error',
    what: 'Tensor parallelism stays inside one instance; a power of two is recommended.',
    why: 'Across nodes it is slow, other degrees are not recommended.',
    source: `${GUIDE}model-parallel-best-practices.html`,
    find: (run, { tensor }) => {
      const gpus = findInstanceType(run.compute.instanceType)?.accelerator?.count ?? run.distribution.processesPerHost;
      if (tensor > gpus)
        return [
          {
            path: parameterPath('tensor_parallel_degree'),
            must: `must be at most the ${gpus} GPUs of one instance`,
            got: tensor,
            fix: `use ${orList(divisorsUpTo(gpus, gpus))}`,
          },
        ];
      const power = (tensor & (tensor - 1)) === 0;
      return when(!power, {
        path: parameterPath('tensor_parallel_degree'),
        level: 'warning',
        must: 'must be a power of two to be recommended',
        got: tensor,
        fix: 'use 1, 2, 4 or 8',
      });
    },
  }),
  rule({
    id: 'smp-v1/sharded-data-parallel',
    level: 'error',
    what: 'Sharded data parallelism goes without pipeline parallelism and optimizer state sharding; with TP it needs prescaled_batch and PyTorch 1.13.1.',
    why: 'The library refuses the combination.',
    source: SDP,
    find: (run, { shard, pipeline, tensor, isOn }) => {
      if (shard <= 1) return [];
      const version = pytorchOfImage(run);
      return [
        ...when(pipeline > 1, {
          path: parameterPath('pipeline_parallel_degree'),
          must: `must be 1 with sharded_data_parallel_degree ${shard}`,
          got: pipeline,
          fix: 'use one of the two',
        }),
        ...when(isOn('shard_optimizer_state'), {
          path: parameterPath('shard_optimizer_state'),
          must: 'must be false with sharded data parallelism',
          got: true,
          fix: 'remove it: the optimizer state is sharded already',
        }),
        ...when(tensor > 1 && !isOn('prescaled_batch'), {
          path: parameterPath('prescaled_batch'),
          must: 'must be true with sharded data parallelism and tensor parallelism',
          got: run.distribution.parameters.prescaled_batch ?? false,
          fix: 'add prescaled_batch: true',
        }),
        ...when(tensor > 1 && version !== undefined && compareVersions(version, '1.13.1') < 0, {
          path: 'image.version',
          must: 'must be 1.13.1 or 2.0.0 for sharded data parallelism with tensor parallelism',
          got: version,
          fix: 'use version "1.13.1"',
        }),
      ];
    },
  }),
  rule({
    id: 'smp-v1/precision',
    level: 'error',
    what: 'bf16 needs sharded data parallelism; fp16 and bf16 exclude each other and agree with training.precision.',
    why: 'The library refuses bf16 otherwise.',
    source: SDP,
    find: (run, { shard, isOn }) => {
      const written = run.written.training?.precision;
      const theirs = isOn('bf16') ? 'bf16' : isOn('fp16') ? 'fp16' : undefined;
      return [
        ...when(isOn('bf16') && shard <= 1, {
          path: parameterPath('bf16'),
          must: 'must go with sharded_data_parallel_degree above 1',
          got: true,
          fix: 'use fp16: true, or shard',
        }),
        ...when(isOn('bf16') && isOn('fp16'), {
          path: parameterPath('fp16'),
          must: 'must not be on together with bf16',
          got: true,
          fix: 'remove one of the two',
        }),
        ...when(written !== undefined && theirs !== undefined && written !== theirs, {
          path: parameterPath(theirs ?? 'bf16'),
          must: `must agree with training.precision ${written}`,
          got: true,
          fix: 'write one of the two',
        }),
      ];
    },
  }),
  rule({
    id: 'smp-v1/partitioning',
    level: 'error',
    what: 'auto_partition: false needs default_partition, which is below the number of partitions.',
    why: 'The SDK and the library refuse it.',
    source: 'aws/sagemaker-python-sdk v2.257.6 fw_utils.py validate_mp_config',
    find: (run, { pipeline, has }) => {
      const manual = run.distribution.parameters.auto_partition === false;
      const chosen = run.distribution.parameters.default_partition;
      return [
        ...when(manual && !has('default_partition'), {
          path: parameterPath('default_partition'),
          must: 'must be given with auto_partition false',
          fix: 'add default_partition: 0',
        }),
        ...when(typeof chosen === 'number' && chosen >= pipeline, {
          path: parameterPath('default_partition'),
          must: `must be below the ${pipeline} partitions`,
          got: chosen,
          fix: `use 0 to ${pipeline - 1}`,
        }),
      ];
    },
  }),
  rule({
    id: 'smp-v1/ddp-options',
    level: 'error',
    what: 'ddp_port and ddp_dist_backend need ddp; ddp and horovod exclude each other.',
    why: 'The SDK refuses it.',
    source: 'aws/sagemaker-python-sdk v2.257.6 fw_utils.py validate_mp_config',
    find: (run, { has, isOn }) => [
      ...['ddp_port', 'ddp_dist_backend'].flatMap((key) =>
        when(has(key) && !isOn('ddp'), {
          path: parameterPath(key),
          must: 'must go with ddp: true',
          got: run.distribution.parameters[key],
          fix: 'add ddp: true',
        }),
      ),
      ...when(isOn('ddp') && isOn('horovod'), {
        path: parameterPath('horovod'),
        must: 'must not be on together with ddp',
        got: true,
        fix: 'remove it',
      }),
    ],
  }),
  rule({
    id: 'smp-v1/microbatches',
    level: 'error',
    what: 'The batch of a rank is a multiple of microbatches, and no more microbatches are active than there are.',
    why: 'A batch that cannot be split stops the job at its first step.',
    source: `${GUIDE}model-parallel-customize-tips-pitfalls.html`,
    find: (run) => {
      const microbatches = degree(run, 'microbatches', 1);
      const active = degree(run, 'active_microbatches', 0);
      const batch = run.written.training?.microBatchSize;
      return [
        ...when(batch !== undefined && batch > 1 && batch % microbatches !== 0, {
          path: 'training.microBatchSize',
          must: `must be a multiple of microbatches ${microbatches}`,
          got: batch,
          fix: `use ${microbatches * Math.ceil((batch ?? 1) / microbatches)}`,
        }),
        ...when(active > microbatches, {
          path: parameterPath('active_microbatches'),
          level: 'warning',
          must: `must be at most microbatches ${microbatches} to have an effect`,
          got: active,
          fix: `use ${microbatches} or less`,
        }),
      ];
    },
  }),
  rule({
    id: 'smp-v1/offload',
    level: 'warning',
    what: 'Activation offloading needs activation checkpointing and more than one microbatch.',
    why: 'Otherwise nothing is saved.',
    source: `${GUIDE}model-parallel-extended-features-pytorch-activation-offloading.html`,
    find: (run, { isOn, shard }) => {
      if (!isOn('offload_activations')) return [];
      const ours = run.written.training?.activationOffload;
      return [
        ...when(run.written.training?.activationCheckpointing === 'none', {
          path: 'training.activationCheckpointing',
          must: 'must be selective or full with offload_activations',
          got: 'none',
          fix: 'use full',
        }),
        ...when(degree(run, 'microbatches', 1) === 1 && shard <= 1, {
          path: parameterPath('microbatches'),
          must: 'must be above 1 for offload_activations to save memory',
          got: degree(run, 'microbatches', 1),
          fix: 'use 2 or 4',
        }),
        ...when(ours === false, {
          path: parameterPath('offload_activations'),
          level: 'error',
          must: 'must agree with training.activationOffload false',
          got: true,
          fix: 'write one of the two',
        }),
      ];
    },
  }),
  rule({
    id: 'smp-v1/prescaled-batch',
    level: 'warning',
    mayAcknowledge: true,
    what: 'prescaled_batch is recommended with pipeline and tensor parallelism.',
    why: 'The ranks of a tensor-parallel group then share one batch instead of each reading its own; the batch per group is what you set.',
    source: `${GUIDE}model-parallel-best-practices.html`,
    find: (_run, { pipeline, tensor, isOn }) =>
      when(pipeline > 1 && tensor > 1 && !isOn('prescaled_batch'), {
        path: parameterPath('prescaled_batch'),
        must: 'is recommended with pipeline and tensor parallelism',
        got: false,
        fix: 'add prescaled_batch: true and scale the batch by the tensor degree',
      }),
  }),
  rule({
    id: 'smp-v1/mpi-options',
    level: 'warning',
    what: 'mpiOptions do not repeat what the launcher sets.',
    why: 'mpirun ends with "listed multiple times" for a repeated MCA parameter.',
    source: `${GUIDE}model-parallel-sm-sdk.html`,
    find: (run) =>
      when(run.distribution.mpiOptions.includes('btl_vader_single_copy_mechanism'), {
        path: 'distribution.mpiOptions',
        must: 'must not repeat --mca btl_vader_single_copy_mechanism, which is a default',
        got: run.distribution.mpiOptions,
        fix: 'remove it',
      }),
  }),
  rule({
    id: 'smp-v1/archived',
    level: 'warning',
    mayAcknowledge: true,
    what: 'SMP v1 is archived.',
    why: 'Archived on 2023-12-19; its last release is 1.15.0 of 2023-04-27, its images are out of patch.',
    source: `${GUIDE}model-parallel.html`,
    find: () => [
      {
        path: 'distribution.library',
        must: 'must be a library that still gets releases',
        got: 'smp-v1',
        fix: 'use fsdp or megatron for new work, or acknowledge smp-v1/archived',
      },
    ],
  }),
];
