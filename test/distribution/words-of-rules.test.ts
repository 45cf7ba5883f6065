// What the rules of each library say, word for word, and the nearest file of which they say nothing. The cluster has 2 instances of 8 GPUs.
import { describe, expect, test } from 'vitest';
import { resolvedDeepspeedConfig } from '../../lib/distribution/deepspeed';
import { BASE, issuesOf, runOf } from '../support/runs';

type Row = [rule: string, parameters: object, training: object, said: string[]];

const file = (library: string, parameters: object, training: object, rest: object = {}) => ({
  ...BASE,
  training,
  distribution: { library, processesPerHost: 8, parameters },
  ...rest,
});
/** Level and message of each issue, parameters by their own name. */
const words = (of: object, rule: string) =>
  issuesOf(of, rule).map(({ level, message }) => `${level} ${message.replace('distribution.parameters.', '')}`);

describe('deepspeed', () => {
  const BATCH = { train_batch_size: 64, train_micro_batch_size_per_gpu: 2 };
  test.each<Row>([
    ['deepspeed/batch', { ...BATCH, gradient_accumulation_steps: 2 }, {}, []],
    ['deepspeed/batch', BATCH, {}, []],
    ['deepspeed/batch', { train_batch_size: 48 }, {}, []],
    [
      'deepspeed/batch',
      { ...BATCH, gradient_accumulation_steps: 4 },
      {},
      [
        'error train_batch_size: must be train_micro_batch_size_per_gpu 2 x gradient_accumulation_steps 4 x 16 ranks = 128, got 64; use 128, or auto',
      ],
    ],
    [
      'deepspeed/batch',
      { train_batch_size: 48, train_micro_batch_size_per_gpu: 2 },
      {},
      [
        'error train_batch_size: must be train_micro_batch_size_per_gpu 2 x gradient_accumulation_steps n x 16 ranks, got 48; use 64, or auto',
      ],
    ],
    [
      'deepspeed/batch',
      { train_batch_size: 40 },
      {},
      ['error train_batch_size: must be a multiple of the 16 ranks, got 40; use 48'],
    ],
    ['deepspeed/conflict', { train_batch_size: 64 }, { globalBatchSize: 64 }, []],
    ['deepspeed/conflict', { train_batch_size: 64 }, {}, []],
    ['deepspeed/conflict', {}, { globalBatchSize: 64 }, []],
    ['deepspeed/conflict', { train_batch_size: 'auto' }, { globalBatchSize: 64 }, []],
    [
      'deepspeed/conflict',
      { train_batch_size: 64, train_micro_batch_size_per_gpu: 2 },
      { globalBatchSize: 128, microBatchSize: 4 },
      [
        'error train_batch_size: must agree with training.globalBatchSize 128, got 64; write "auto", or one of the two',
        'error train_micro_batch_size_per_gpu: must agree with training.microBatchSize 4, got 2; write "auto", or one of the two',
      ],
    ],
    ['deepspeed/stage', { zero_optimization: { stage: 3 } }, {}, []],
    ['deepspeed/stage', { zero_optimization: {} }, {}, []],
  ])('%s %j %j', (rule, parameters, training, said) => {
    expect(words(file('deepspeed', parameters, training), rule)).toEqual(said);
  });

  const auto = {
    train_batch_size: 'auto',
    train_micro_batch_size_per_gpu: 'auto',
    gradient_accumulation_steps: 'auto',
  };
  test.each([
    [
      { globalBatchSize: 128, microBatchSize: 4 },
      { ...auto, train_batch_size: 128, train_micro_batch_size_per_gpu: 4, gradient_accumulation_steps: 2 },
    ],
    [{ globalBatchSize: 128 }, { ...auto, train_batch_size: 128 }],
    [{ microBatchSize: 4 }, { ...auto, train_micro_batch_size_per_gpu: 4 }],
    [{}, auto],
  ])('"auto" of a batch is what %j says', (training, config) => {
    expect(resolvedDeepspeedConfig(runOf(file('deepspeed', auto, training)))).toMatchObject(config);
  });
});

describe('megatron', () => {
  const VIRTUAL = 'num-layers-per-virtual-pipeline-stage';
  test.each<Row>([
    ['megatron/virtual-stages', { [VIRTUAL]: 4, 'num-layers': 32, 'pipeline-model-parallel-size': 4 }, {}, []],
    [
      'megatron/virtual-stages',
      { [VIRTUAL]: 3, 'num-layers': 32, 'pipeline-model-parallel-size': 4 },
      {},
      [`error ${VIRTUAL}: must divide the 8 layers of one stage, got 3; use 1, 2, 4 or 8`],
    ],
    [
      'megatron/virtual-stages',
      { [VIRTUAL]: 4, 'num-layers': 32 },
      {},
      [
        `error ${VIRTUAL}: must go with pipeline-model-parallel-size above 1, got 4; remove it, or raise the pipeline size`,
      ],
    ],
  ])('%s %j %j', (rule, parameters, training, said) => {
    expect(words(file('megatron', parameters, training), rule)).toEqual(said);
  });
});

describe('smp-v1', () => {
  const image = { kind: 'dlc', version: '1.13.1' };
  const OFFLOAD = { offload_activations: true, microbatches: 2 };
  test.each<Row>([
    ['smp-v1/offload', OFFLOAD, {}, []],
    ['smp-v1/offload', { microbatches: 1 }, { activationCheckpointing: 'none' }, []],
    ['smp-v1/offload', OFFLOAD, { activationCheckpointing: 'full' }, []],
    [
      'smp-v1/offload',
      OFFLOAD,
      { activationCheckpointing: 'none' },
      [
        'warning training.activationCheckpointing: must be selective or full with offload_activations, got none; use full',
      ],
    ],
    [
      'smp-v1/offload',
      { offload_activations: true },
      {},
      ['warning microbatches: must be above 1 for offload_activations to save memory, got 1; use 2 or 4'],
    ],
    ['smp-v1/offload', { offload_activations: true, ddp: true, sharded_data_parallel_degree: 2 }, {}, []],
    ['smp-v1/partitioning', { auto_partition: true, pipeline_parallel_degree: 2 }, {}, []],
    ['smp-v1/partitioning', { auto_partition: false, default_partition: 1, pipeline_parallel_degree: 2 }, {}, []],
    [
      'smp-v1/partitioning',
      { auto_partition: false, pipeline_parallel_degree: 2 },
      {},
      ['error default_partition: must be given with auto_partition false; add default_partition: 0'],
    ],
    [
      'smp-v1/partitioning',
      { auto_partition: false, default_partition: 2, pipeline_parallel_degree: 2 },
      {},
      ['error default_partition: must be below the 2 partitions, got 2; use 0 to 1'],
    ],
    [
      'smp-v1/advice-order',
      { pipeline_parallel_degree: 2 },
      {},
      [
        'info pipeline_parallel_degree: is best 1 until tensor parallelism fills an instance, got 2; try tensor_parallel_degree first',
      ],
    ],
    ['smp-v1/advice-order', { pipeline_parallel_degree: 1 }, {}, []],
    ['smp-v1/advice-order', { ddp: true, pipeline_parallel_degree: 2, tensor_parallel_degree: 8 }, {}, []],
  ])('%s %j %j', (rule, parameters, training, said) => {
    expect(words(file('smp-v1', parameters, training, { image }), rule)).toEqual(said);
  });

  test('pipelines inside one instance are not advised against', () => {
    const compute = { instanceType: 'ml.p4d.24xlarge', instanceCount: 1 };
    const alone = file('smp-v1', { pipeline_parallel_degree: 2 }, {}, { image, compute });
    expect(words(alone, 'smp-v1/advice-order')).toEqual([]);
  });
});

describe('smp-v2', () => {
  test.each([
    ['2.3.1', { context_parallel_degree: 2, hybrid_shard_degree: 8 }, []],
    ['2.2.0', { context_parallel_degree: 1 }, []],
    ['2.2.0', { expert_parallel_degree: 2 }, []],
    [
      '2.2.0',
      { context_parallel_degree: 2, hybrid_shard_degree: 8 },
      [
        'error context_parallel_degree: must have SMP 2.5.0 (the image of PyTorch 2.3.1) or newer, got image.version 2.2.0; use image.version "2.5.1"',
      ],
    ],
    [
      '2.1.2',
      { expert_parallel_degree: 2 },
      [
        'error expert_parallel_degree: must have SMP 2.3.0 (the image of PyTorch 2.2.0) or newer, got image.version 2.1.2; use image.version "2.5.1"',
      ],
    ],
  ])('degrees in the image of PyTorch %s: %j', (version, parameters, said) => {
    const image = { kind: 'smp', version };
    expect(words(file('smp-v2', parameters, {}, { image }), 'smp-v2/context-release')).toEqual(said);
  });
});
