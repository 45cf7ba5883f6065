// How the degrees of SMP v1 fit each other, the cluster (2 ml.p4d.24xlarge, 16 GPUs) and the image: what is said, and where nothing is.
import { expect, test } from 'vitest';
import { BASE, issuesOf } from '../support/runs';

const v1 = (parameters: object, version = '1.13.1', rest: object = {}) => ({
  ...BASE,
  image: { kind: 'dlc', version },
  distribution: { library: 'smp-v1', processesPerHost: 8, parameters },
  ...rest,
});
const said = (file: object, rule: string) =>
  issuesOf(file, rule).map(({ level, message }) => `${level} ${message.replace('distribution.parameters.', '')}`);

test.each([
  [{ partitions: 2, pipeline_parallel_degree: 2 }, []],
  [{ partitions: 2 }, []],
  [{ pipeline_parallel_degree: 2 }, []],
  [
    { partitions: 2, pipeline_parallel_degree: 4 },
    ['error partitions: must equal pipeline_parallel_degree 4, got 2; write pipeline_parallel_degree alone'],
  ],
])('two names of one parameter: %j', (parameters, issues) => {
  expect(said(v1(parameters), 'smp-v1/partitions-twice')).toEqual(issues);
});

const DIVIDES = 'use degrees whose product is 1, 2, 4, 8 or 16';
test.each([
  [{}, []],
  [{ pipeline_parallel_degree: 4, tensor_parallel_degree: 4 }, []],
  [{ pipeline_parallel_degree: 2, sharded_data_parallel_degree: 8 }, []],
  [{ sharded_data_parallel_degree: 1 }, []],
  [
    { pipeline_parallel_degree: 3 },
    [
      `error pipeline_parallel_degree: must make pipeline x tensor a divisor of the world size 16, got 3 x 1; ${DIVIDES}`,
    ],
  ],
  [
    { tensor_parallel_degree: 3 },
    [`error tensor_parallel_degree: must make pipeline x tensor a divisor of the world size 16, got 1 x 3; ${DIVIDES}`],
  ],
  [
    // Each divides the world, their product does not.
    { pipeline_parallel_degree: 4, tensor_parallel_degree: 8 },
    [
      `error pipeline_parallel_degree: must make pipeline x tensor a divisor of the world size 16, got 4 x 8; ${DIVIDES}`,
    ],
  ],
  [
    { pipeline_parallel_degree: 2, tensor_parallel_degree: 2, sharded_data_parallel_degree: 8 },
    ['error sharded_data_parallel_degree: must divide the 4 data-parallel ranks, got 8; use 1, 2 or 4'],
  ],
  [
    { sharded_data_parallel_degree: 3 },
    ['error sharded_data_parallel_degree: must divide the 16 data-parallel ranks, got 3; use 1, 2, 4, 8 or 16'],
  ],
])('degrees %j', (parameters, issues) => {
  expect(said(v1(parameters), 'smp-v1/degrees')).toEqual(issues);
});

test('the largest degrees that fit are named of a large cluster', () => {
  const compute = { instanceType: 'ml.p4d.24xlarge', instanceCount: 16 };
  const [issue] = said(v1({ sharded_data_parallel_degree: 3 }, undefined, { compute }), 'smp-v1/degrees');
  expect(issue).toMatch(/the 128 data-parallel ranks, got 3; use 4, 8, 16, 32, 64 or 128$/);
});

test.each([
  [{}, []],
  [{ ddp: true, tensor_parallel_degree: 2, sharded_data_parallel_degree: 2 }, []],
  [{ tensor_parallel_degree: 1, sharded_data_parallel_degree: 1 }, []],
  [{ tensor_parallel_degree: 2 }, ['error ddp: must be true with tensor_parallel_degree 2, got false; add ddp: true']],
  [
    { ddp: false, sharded_data_parallel_degree: 2 },
    ['error ddp: must be true with sharded_data_parallel_degree 2, got false; add ddp: true'],
  ],
])('ddp: %j', (parameters, issues) => {
  expect(said(v1(parameters), 'smp-v1/tensor-needs-ddp')).toEqual(issues);
});

test.each([
  ['ml.p4d.24xlarge', 8, []],
  ['ml.p4d.24xlarge', 1, []],
  [
    'ml.p4d.24xlarge',
    6,
    ['warning tensor_parallel_degree: must be a power of two to be recommended, got 6; use 1, 2, 4 or 8'],
  ],
  [
    'ml.p4d.24xlarge',
    16,
    ['error tensor_parallel_degree: must be at most the 8 GPUs of one instance, got 16; use 1, 2, 4 or 8'],
  ],
  [
    'ml.g5.12xlarge',
    8,
    ['error tensor_parallel_degree: must be at most the 4 GPUs of one instance, got 8; use 1, 2 or 4'],
  ],
  // A type without GPUs, and one that nobody knows: the processes of a host count.
  ['ml.c5.18xlarge', 8, []],
  [
    'ml.p9.48xlarge',
    16,
    ['error tensor_parallel_degree: must be at most the 8 GPUs of one instance, got 16; use 1, 2, 4 or 8'],
  ],
])('on %s, tensor parallel degree %d', (instanceType, tensor, issues) => {
  const file = v1({ ddp: true, tensor_parallel_degree: tensor }, undefined, {
    compute: { instanceType, instanceCount: 2 },
  });
  expect(said(file, 'smp-v1/tensor-within-node')).toEqual(issues);
});

const SHARDED = { ddp: true, sharded_data_parallel_degree: 2 };
const UNSCALED =
  'error prescaled_batch: must be true with sharded data parallelism and tensor parallelism, got false; add prescaled_batch: true';
test.each([
  [{ ddp: true, pipeline_parallel_degree: 2, shard_optimizer_state: true, tensor_parallel_degree: 2 }, '1.12.0', []],
  [{ ...SHARDED, sharded_data_parallel_degree: 1, pipeline_parallel_degree: 2 }, '1.13.1', []],
  [SHARDED, '1.12.0', []],
  [{ ...SHARDED, tensor_parallel_degree: 1 }, '1.12.0', []],
  [{ ...SHARDED, tensor_parallel_degree: 2, prescaled_batch: true }, '1.13.1', []],
  [{ ...SHARDED, tensor_parallel_degree: 2, prescaled_batch: true }, '2.0.0', []],
  [{ ...SHARDED, tensor_parallel_degree: 2 }, '1.13.1', [UNSCALED]],
  [{ ...SHARDED, tensor_parallel_degree: 2, prescaled_batch: false }, '1.13.1', [UNSCALED]],
  [
    { ...SHARDED, tensor_parallel_degree: 2, prescaled_batch: true },
    '1.12.0',
    [
      'error image.version: must be 1.13.1 or 2.0.0 for sharded data parallelism with tensor parallelism, got 1.12.0; use version "1.13.1"',
    ],
  ],
  [
    { ...SHARDED, pipeline_parallel_degree: 2 },
    '1.13.1',
    ['error pipeline_parallel_degree: must be 1 with sharded_data_parallel_degree 2, got 2; use one of the two'],
  ],
  [
    { ...SHARDED, shard_optimizer_state: true },
    '1.13.1',
    [
      'error shard_optimizer_state: must be false with sharded data parallelism, got true; remove it: the optimizer state is sharded already',
    ],
  ],
])('sharded data parallelism: %j in PyTorch %s', (parameters, version, issues) => {
  expect(said(v1(parameters, version), 'smp-v1/sharded-data-parallel')).toEqual(issues);
});

test('nothing is said of the version of an image that nobody knows', () => {
  const image = { kind: 'uri', uri: '111122223333.dkr.ecr.us-west-2.amazonaws.com/own:1' };
  const file = v1({ ...SHARDED, tensor_parallel_degree: 2, prescaled_batch: true }, undefined, { image });
  expect(said(file, 'smp-v1/sharded-data-parallel')).toEqual([]);
});
