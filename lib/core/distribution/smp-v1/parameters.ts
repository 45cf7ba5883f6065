import { worldSize } from '../../config/resolve-run';
import { rulesAbout } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import type { ParameterKind } from '../parameters';
import { degree } from '../strategy';

const INT = { type: 'int', min: 1 } as const;
const BOOL = { type: 'bool' } as const;

/** Every parameter of SMP v1. Source: sagemaker.readthedocs.io v2.199.0 api/training/smd_model_parallel_general. */
export const SMP_V1_PARAMETERS: Readonly<Record<string, ParameterKind>> = {
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

/**
 * The release that introduced a parameter, if images with older releases exist. `fp16` is not included: releases before 1.10 accept it as
 * `fp16_params`. Source: the same.
 */
export const SMP_V1_SINCE: Readonly<Record<string, string>> = {
  ddp_dist_backend: '1.13',
  bf16: '1.11',
  sharded_data_parallel_degree: '1.11',
  sdp_reduce_bucket_size: '1.11',
  sdp_param_persistence_threshold: '1.11',
  sdp_max_live_parameters: '1.11',
  sdp_hierarchical_allgather: '1.11',
  sdp_gradient_clipping: '1.11',
  offload_activations: '1.6',
  activation_loading_horizon: '1.6',
  tensor_parallel_degree: '1.6',
  fp16_params: '1.6',
  shard_optimizer_state: '1.6',
  prescaled_batch: '1.6',
  skip_tracing: '1.6',
};

/** The settings of SMP v1 that rules and layout read, including the library's defaults; a degree that is not given is 1. */
export function smpV1Settings(run: RunSpec) {
  const given = run.distribution.parameters;
  return {
    world: worldSize(run),
    pipeline: degree(run, 'pipeline_parallel_degree', degree(run, 'partitions', 1)),
    tensor: degree(run, 'tensor_parallel_degree', 1),
    shard: degree(run, 'sharded_data_parallel_degree', 1),
    has: (key: string) => key in given,
    isOn: (key: string) => given[key] === true,
  };
}

export const smpV1Rule = rulesAbout((run) => (run.distribution.library === 'smp-v1' ? smpV1Settings(run) : undefined));
