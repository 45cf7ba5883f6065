import { describe, expect, test } from 'vitest';
import { checkRun } from '../../../lib/core/rules';
import { BASE, DESCRIPTOR, issuesOf, runOf } from '../../support/runs';

const TOKENS = 's3://{dataBucket}/tokens/';
const file = (compute: object = {}, rest: object = {}) => ({
  ...BASE,
  checkpoints: { mode: 'direct' },
  ...rest,
  compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 8, spareInstances: 2, ...compute },
});
const BUILTIN = {
  model: { preset: 'llama3-8b' },
  training: { sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 64, steps: 1000 },
  code: { source: 'builtin' },
  checkpoints: undefined,
  data: [{ channel: 'train', s3: TOKENS }],
};
const said = (given: object) => issuesOf(given, 'compute/spare-').map(({ level, message }) => `${level} ${message}`);

describe('accepted', () => {
  test.each<[string, object]>([
    ['own code under torchrun with direct checkpoints', file()],
    ['the built-in trainer, whose checkpoints are direct', file({}, BUILTIN)],
    ['DeepSpeed', file({}, { distribution: { library: 'deepspeed' } })],
    ['a training plan', file({ trainingPlanArn: 'arn:aws:sagemaker:us-west-2:111122223333:training-plan/mine' })],
    ['spot', file({ capacity: 'spot' })],
    ['alternatives', file({ alternatives: [{ instanceType: 'ml.p5en.48xlarge' }] })],
    ['one spare for one host', file({ instanceCount: 1, spareInstances: 1 })],
    ['a quarter', file({ spareInstances: 2 })],
    [
      'checkpoints on FSx for Lustre',
      file(
        {},
        {
          checkpoints: { mode: 'fsx' },
          data: [
            {
              channel: 'fast',
              fsxLustre: { fileSystemId: 'fs-0123456789abcdef0', directoryPath: '/fsx', access: 'rw' },
            },
          ],
        },
      ),
    ],
    ['replicated data', file({}, { data: [{ channel: 'train', s3: TOKENS, s3DataDistribution: 'FullyReplicated' }] })],
  ])('%s', (_what, given) => {
    expect(
      checkRun(runOf(given), {
        descriptor: { ...DESCRIPTOR, fileSystems: { fast: { id: 'fs-0123456789abcdef0' } } },
      }).filter((i) => i.level === 'error'),
    ).toEqual([]);
    expect(said(given)).toEqual([]);
  });

  test('anything without spare hosts', () => {
    const compute = { spareInstances: 0, instanceCount: 1 };
    expect(said(file(compute, { checkpoints: { mode: 'none' }, distribution: { launcher: 'script' } }))).toEqual([]);
  });
});

test.each<[string, object, string[]]>([
  [
    'a processing run',
    {
      name: 'tokens',
      kind: 'processing',
      code: { source: 'builtin-tokenize' },
      compute: { instanceType: 'ml.c5.xlarge', instanceCount: 4, spareInstances: 1 },
      output: { s3: TOKENS },
    },
    ['error compute.spareInstances: must be 0 in a processing run, whose hosts are independent, got 1; remove it'],
  ],
  [
    'instance groups',
    file({
      instanceType: undefined,
      instanceCount: undefined,
      instanceGroups: [{ name: 'gpu', instanceType: 'ml.p5.48xlarge', instanceCount: 8 }],
    }),
    [
      'error compute.spareInstances: must be 0 with instanceGroups: a host can only be replaced by one of the same type, got 2; remove it, or use instanceType and instanceCount',
    ],
  ],
  [
    'hosts that come in groups of 18, also as an alternative',
    file({
      instanceCount: 18,
      alternatives: [{ instanceType: 'ml.p6e-gb200.36xlarge' }],
    }),
    [
      'error compute.alternatives[0].instanceType: must not be ml.p6e-gb200.36xlarge with spareInstances: its hosts come in groups of 18, got ml.p6e-gb200.36xlarge; remove spareInstances, or use another type',
    ],
  ],
  [
    'the toolkit contract',
    file({}, { distribution: { contract: 'toolkit' }, checkpoints: { mode: 'direct' } }),
    [
      'error distribution.contract: must be entrypoint with compute.spareInstances: the driver activates the spare host, got toolkit; use entrypoint, or remove spareInstances',
    ],
  ],
  [
    'mpi',
    file({}, { distribution: { launcher: 'mpi' } }),
    [
      'error distribution.launcher: must be torchrun with compute.spareInstances: mpi fixes its hosts when it starts, got mpi; use torchrun, or remove spareInstances',
    ],
  ],
  [
    'a script',
    file({}, { distribution: { launcher: 'script' } }),
    [
      'error distribution.launcher: must be torchrun with compute.spareInstances: a script finds its hosts by itself, got script; use torchrun, or remove spareInstances',
    ],
  ],
  [
    'SMP v2',
    file({}, { distribution: { library: 'smp-v2' } }),
    [
      'error distribution.library: must not be smp-v1 or smp-v2 with compute.spareInstances: they read the list of hosts themselves, got smp-v2; use fsdp, or remove spareInstances',
    ],
  ],
  [
    'smddp',
    file({ instanceType: 'ml.p4d.24xlarge' }, { distribution: { collectives: 'smddp' } }),
    [
      'error distribution.collectives: must not be smddp with compute.spareInstances: it reads the list of hosts itself, got smddp; use nccl, or remove spareInstances',
    ],
  ],
  [
    'data in parts',
    file(
      {},
      {
        data: [
          { channel: 'train', s3: TOKENS, s3DataDistribution: 'ShardedByS3Key' },
          { channel: 'validation', s3: TOKENS },
        ],
      },
    ),
    [
      'error data[0].s3DataDistribution: must be FullyReplicated with compute.spareInstances: the shard of a spare host would not be used for training, got ShardedByS3Key; use FullyReplicated, or remove spareInstances',
    ],
  ],
  [
    'no checkpoints',
    file({}, { checkpoints: undefined }),
    [
      'error checkpoints.mode: must be direct or fsx with compute.spareInstances: there is nothing to restart from, got none; use direct, or remove spareInstances',
    ],
  ],
  [
    'managed checkpoints',
    file({}, { checkpoints: { mode: 'managed' } }),
    [
      'error checkpoints.mode: must be direct or fsx with compute.spareInstances: SageMaker restores managed ones only when a job starts, got managed; use direct, or remove spareInstances',
    ],
  ],
  [
    'as many spare hosts as others',
    file({ spareInstances: 8 }),
    [
      'warning compute.spareInstances: must be at most a quarter of the 8 hosts of compute.instanceCount to be cost-effective, got 8; use 2; every attempt starts with that many',
    ],
  ],
  [
    'too many for an alternative',
    file({ alternatives: [{ instanceType: 'ml.p5en.48xlarge', instanceCount: 4 }] }),
    [
      'warning compute.spareInstances: must be at most a quarter of the 4 hosts of compute.alternatives[0].instanceCount to be cost-effective, got 2; use 1; every attempt starts with that many',
    ],
  ],
])('fails: %s', (_what, given, messages) => {
  expect(said(given)).toEqual(messages);
});

test('fails: everything at once', () => {
  const given = file(
    { instanceType: 'ml.p4d.24xlarge', instanceCount: 1 },
    {
      distribution: { library: 'smp-v1', contract: 'toolkit', collectives: 'smddp' },
      checkpoints: { mode: 'none' },
      data: [{ channel: 'train', s3: TOKENS, s3DataDistribution: 'ShardedByS3Key' }],
    },
  );
  const found = issuesOf(given, 'compute/spare-').map(
    ({ rule, path }) => `${rule.replace('compute/spare-', '')} ${path}`,
  );
  expect(found).toEqual([
    'launcher distribution.contract',
    'launcher distribution.launcher',
    'launcher distribution.library',
    'launcher distribution.collectives',
    'data data[0].s3DataDistribution',
    'checkpoints checkpoints.mode',
    'share compute.spareInstances',
  ]);
});
