// Limits of the rules of libraries: what lies on one is accepted, what lies just beyond is refused, and a rule keeps quiet about what is not its own.
import { expect, test } from 'vitest';
import { resolvedDeepspeedConfig } from '../../../lib/core/distribution/deepspeed';
import { parameterFindings } from '../../../lib/core/distribution/parameters';
import { BASE, issuesOf, runOf } from '../../support/runs';

const run = (library: string, parameters: object = {}, rest: object = {}) => ({
  ...BASE,
  ...rest,
  distribution: { library, parameters, ...(library === 'smp-v1' && { processesPerHost: 8 }) },
});
const dlc = (version: string) => ({ image: { kind: 'dlc', version } });
const smp = { image: { kind: 'smp', version: '2.5.1' } };
const zero = (options: object) => ({ zero_optimization: options });
const messages = (file: object, rule: string) => issuesOf(file, rule).map((i) => `${i.level} ${i.message}`);

test('DeepSpeed gets the collectives of SMDDP where the run asks for them, and no backend otherwise', () => {
  const config = (collectives?: string) =>
    resolvedDeepspeedConfig(
      runOf({ ...BASE, distribution: { library: 'deepspeed', parameters: { steps_per_print: 5 }, collectives } }),
    );
  expect(config('smddp')).toMatchObject({ steps_per_print: 5, dist_backend: 'smddp' });
  for (const nccl of [undefined, 'nccl']) expect(config(nccl)).not.toHaveProperty('dist_backend');
  expect(config()).toMatchObject({ steps_per_print: 5 });
});

test.each([
  [
    { stage: 0, offload_optimizer: { device: 'cpu' } },
    'offload_optimizer: must be used with stage 1, 2 or 3, got stage 0',
  ],
  [{ stage: 1, offload_optimizer: { device: 'cpu' } }, ''],
  [{ stage: 2, offload_param: { device: 'cpu' } }, 'offload_param: must be used with stage 3, got stage 2'],
  [{ stage: 3, offload_param: { device: 'cpu' } }, ''],
  [{ stage: 0, offload_optimizer: { device: 'none' } }, ''],
  [{ stage: 2, offload_param: { device: 'none' } }, ''],
  [{ offload_param: { device: 'cpu' } }, ''],
  [{ stage: 2 }, ''],
])('offload of DeepSpeed with %j: %s', (options, said) => {
  const found = messages(run('deepspeed', zero(options)), 'deepspeed/offload');
  expect(found).toEqual(
    said === '' ? [] : [expect.stringContaining(`distribution.parameters.zero_optimization.${said}`)],
  );
});

test('degrees of FSDP that do not make the world size are named, with the sizes that would', () => {
  const refused = (parameters: object) => issuesOf(run('fsdp', parameters), 'fsdp/degrees');
  expect(refused({ tensor_parallel_degree: 8 })).toEqual([]);
  expect(refused({ tensor_parallel_degree: 3 })).toMatchObject([
    {
      level: 'error',
      path: 'distribution.parameters.tensor_parallel_degree',
      message:
        'distribution.parameters.tensor_parallel_degree: must divide the world size 16 together with the other degrees, got TP 3 x CP 1 x shard 1 x replicate 1; use degrees among 1, 2, 4, 8 or 16 whose product is 16',
    },
  ]);
});

test.each([
  [{ 'expert-model-parallel-size': 4, 'expert-tensor-parallel-size': 4 }, ''],
  [
    { 'expert-model-parallel-size': 8, 'expert-tensor-parallel-size': 4 },
    'must make expert x expert-tensor-parallel-size a divisor of the 16 ranks of a pipeline stage, got 8 x 4 = 32',
  ],
])('experts of Megatron %j: %s', (sizes, said) => {
  const parameters = { ...sizes, 'tensor-model-parallel-size': 4, 'sequence-parallel': true, 'num-experts': 8 };
  const found = messages(run('megatron', parameters), 'megatron/degrees');
  expect(found).toEqual(said === '' ? [] : [expect.stringContaining(said)]);
});

test('an unknown parameter of a library without words of its own gets the nearest one', () => {
  expect(parameterFindings({ stagee: 1 }, { stage: { type: 'bool' } }, { library: 'smp-v1' })).toEqual([
    {
      path: 'distribution.parameters.stagee',
      must: 'must be a parameter of smp-v1',
      got: 'stagee',
      fix: 'use stage, or remove it',
    },
  ]);
});

test.each([
  ['fsdp', '2.5.1', []],
  ['fsdp', '1.10.2', ['error image.version: must be an image with SMDDP (PyTorch ']],
  ['fsdp', '2.6.0', ['error image.version: must carry SMDDP; PyTorch 2.5.1 is the last image with it, got 2.6.0']],
])('SMDDP collectives of %s with PyTorch %s', (library, version, said) => {
  const file = { ...BASE, ...dlc(version), distribution: { library, collectives: 'smddp' } };
  expect(messages(file, 'smddp/pytorch')).toEqual(said.map((text) => expect.stringContaining(text)));
});

test.each([
  ['fsdp', 1],
  ['ddp', 0],
])('on ml.p3dn.24xlarge SMDDP has AllReduce only: %s is refused %d times', (library, times) => {
  const compute = { instanceType: 'ml.p3dn.24xlarge', instanceCount: 2 };
  const file = { ...BASE, compute, distribution: { library, collectives: 'smddp' } };
  expect(issuesOf(file, 'smddp/instance-type').map((i) => i.path)).toEqual(Array(times).fill('compute.instanceType'));
});

test('SMP v1 is looked for in images of its own time', () => {
  const uri = (tag: string) => ({
    image: { kind: 'uri', uri: `763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:${tag}` },
  });
  const said = (image: object) => messages(run('smp-v1', { ddp: true }, image), 'smp-v1/pytorch');
  expect([dlc('1.13.1'), dlc('2.0.0'), uri('2.0.0-gpu-py310'), uri('own')].flatMap(said)).toEqual([]);
  const carry = (path: string, got: string) =>
    expect.stringMatching(
      new RegExp(`^error ${path}: must carry PyTorch 2\\.0\\.0, .* or 1\\.8\\.1 for smp-v1, got ${got}; use kind dlc`),
    );
  expect(said(dlc('2.0.1'))).toEqual([carry('image.version', '2.0.1')]);
  expect(said(uri('2.1.0-gpu-py310'))).toEqual([carry('image.uri', '2.1.0')]);
  expect(said(smp)).toEqual([expect.stringContaining('image.kind: must be dlc, huggingface, uri or environment')]);
});

test.each([
  [undefined, []],
  [8, []],
  [6, ['error training.microBatchSize: must be a multiple of microbatches 4, got 6; use 8']],
  [1, ['warning training.microBatchSize: must be a multiple of microbatches 4, got 1; use 4']],
])('a batch of %s in four microbatches', (microBatchSize, said) => {
  const parameters = { pipeline_parallel_degree: 2, microbatches: 4 };
  const file = run('smp-v1', parameters, { ...dlc('1.13.1'), training: { microBatchSize } });
  expect(messages(file, 'smp-v1/microbatches')).toEqual(said);
});

test.each([
  [true, 'none', ['warning training.activationCheckpointing: must be selective or full with sm_activation_offloading']],
  [true, 'full', []],
  [false, 'none', []],
])('offloading %s with checkpointing %s', (sm_activation_offloading, activationCheckpointing, said) => {
  const file = run('smp-v2', { sm_activation_offloading }, { ...smp, training: { activationCheckpointing } });
  expect(messages(file, 'smp-v2/offload-without-checkpointing')).toEqual(
    said.map((text) => expect.stringContaining(text)),
  );
});

test('query groups of Megatron are split over the ranks of a tensor group', () => {
  const found = (groups: number) =>
    messages(
      run('megatron', { 'tensor-model-parallel-size': 4, 'num-attention-heads': 16, 'num-query-groups': groups }),
      'megatron/divisibility',
    );
  expect(found(4)).toEqual([]);
  expect(found(6)).toEqual([expect.stringContaining('parameters.num-query-groups: must be')]);
});

test('SMDDP under mpirun asks for the toolkit, and says so', () => {
  const mpi = (contract: string) => ({
    ...BASE,
    distribution: { library: 'ddp', launcher: 'mpi', contract, collectives: 'smddp' },
  });
  expect(messages(mpi('toolkit'), 'smddp/launcher')).toEqual([]);
  expect(messages(mpi('entrypoint'), 'smddp/launcher')).toEqual([
    'error distribution.contract: must be toolkit for smddp under mpi, got entrypoint; use contract toolkit, or launcher torchrun',
  ]);
});

test.each([
  [{ kind: 'dlc', version: '2.5.1' }, 1],
  [{ kind: 'huggingface', version: '4.49.0' }, 1],
  [{ kind: 'uri', uri: '111122223333.dkr.ecr.us-west-2.amazonaws.com/own:1' }, 0],
  [smp.image, 0],
])('SMP v2 with the image %j is refused %d times', (image, times) => {
  expect(issuesOf(run('smp-v2', {}, { image }), 'smp-v2/image').map((i) => i.path)).toEqual(
    Array(times).fill('image.kind'),
  );
});

test('SMP images have regions of their own, which another image does not ask for', () => {
  const found = (image: object, region: string) => issuesOf(run('smp-v2', {}, { image }), 'smp-v2/region', { region });
  const own = { kind: 'uri', uri: '111122223333.dkr.ecr.af-south-1.amazonaws.com/own:1' };
  expect([...found(smp.image, 'us-west-2'), ...found(own, 'af-south-1')]).toEqual([]);
  expect(found(smp.image, 'af-south-1')).toMatchObject([{ level: 'error', path: 'image.kind' }]);
});

test.each([
  [1, 2, []],
  [2, 2, []],
  [4, 2, ['error distribution.parameters.context_parallel_degree: must be at most hybrid_shard_degree 2, got 4']],
  [4, 0, []],
])('a context of %d ranks in shard groups of %d', (context_parallel_degree, hybrid_shard_degree, said) => {
  const file = run('smp-v2', { context_parallel_degree, hybrid_shard_degree }, smp);
  expect(messages(file, 'smp-v2/context-within-shard')).toEqual(said.map((text) => expect.stringContaining(text)));
});

test.each([
  [4096, 1, 1],
  [8191, 1, 1],
  [8192, 1, 0],
  // 16 ranks x 128 sequences x 4,096 tokens: over the 4 million where tensor parallelism is what lowers the batch.
  [4096, 128, 0],
  [undefined, 1, 0],
])(
  'tensor parallelism of SMP v2 with sequences of %s and %d of them a rank: %d advice',
  (sequenceLength, microBatchSize, times) => {
    const file = run('smp-v2', { tensor_parallel_degree: 2 }, { ...smp, training: { sequenceLength, microBatchSize } });
    expect(issuesOf(file, 'smp-v2/advice-tensor')).toHaveLength(times);
  },
);

test('a sequence that the ranks of a tensor group cannot share gets the next length that they can', () => {
  const file = (sequenceLength: number) =>
    run(
      'fsdp',
      { tensor_parallel_degree: 4, context_parallel_degree: 2 },
      {
        model: { preset: 'llama3-8b' },
        training: { sequenceLength, globalBatchSize: 16, steps: 10 },
        code: { source: 'builtin' },
        data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
      },
    );
  const shared = (length: number) =>
    issuesOf(file(length), 'fsdp/').filter(({ path }) => path === 'training.sequenceLength');
  expect(shared(1024)).toEqual([]);
  expect(shared(1028).map((i) => i.message)).toEqual([
    expect.stringContaining('must be a multiple of 8 (context x tensor_parallel_degree), got 1028; use 1032'),
  ]);
});

test('channels beside FSx for Lustre are named where a large model of SMP v1 is advised to use it', () => {
  const file = run(
    'smp-v1',
    {},
    {
      ...dlc('1.13.1'),
      model: { preset: 'llama2-13b' },
      data: [{ channel: 'words', s3: 's3://{dataBucket}/tokens/' }],
    },
  );
  expect(messages(file, 'smp-v1/advice-file-system')).toEqual([expect.stringContaining('got ["words"];')]);
});

test.each([
  [
    1,
    [
      'warning compute.instanceCount: must be at least 2 for SMDDP to gain anything, got 1; use 2 or more, or collectives nccl',
    ],
  ],
  [2, []],
])('SMDDP on %d instances', (instanceCount, said) => {
  const compute = { ...BASE.compute, instanceCount };
  const file = { ...BASE, compute, distribution: { library: 'fsdp', collectives: 'smddp' } };
  expect(messages(file, 'smddp/one-instance')).toEqual(said);
});

test('a choice, a text and a switch of a library are refused as what they are', () => {
  const known = {
    kind: { type: 'enum', values: ['a', 'b'] },
    text: { type: 'string' },
    on: { type: 'bool' },
  } as const;
  const found = (given: object) => parameterFindings({ ...given }, known, { library: 'smp-v1' });
  expect(found({ kind: 'b', text: 'x', on: false })).toEqual([]);
  expect(found({ kind: 'c', text: 1, on: 'yes' })).toEqual([
    { path: 'distribution.parameters.kind', must: 'must be a or b', fix: 'use one of them' },
    { path: 'distribution.parameters.text', must: 'must be text', fix: 'write it in quotes' },
    { path: 'distribution.parameters.on', must: 'must be true or false', fix: 'use true or false' },
  ]);
});

test.each([
  [{ pipeline_parallel_degree: 2, tensor_parallel_degree: 2 }, 1],
  [{ pipeline_parallel_degree: 2, tensor_parallel_degree: 2, prescaled_batch: true }, 0],
  [{ pipeline_parallel_degree: 1, tensor_parallel_degree: 2 }, 0],
  [{ pipeline_parallel_degree: 2, tensor_parallel_degree: 1 }, 0],
])('a prescaled batch is recommended with %j: %d times', (degrees, times) => {
  const file = run('smp-v1', { ddp: true, ...degrees }, dlc('1.13.1'));
  const about = issuesOf(file, 'smp-v1/prescaled-batch');
  expect(about).toHaveLength(times);
});
