// What a run file that says nothing means: docs/decisions/0007-where-sources-differ.md.
import { describe, expect, test } from 'vitest';
import {
  hasGpus,
  healthCheckOf,
  onInstances,
  requestedAlternativesOf,
  requestedGroupsOf,
  startsByDriver,
  totalSteps,
  trainingGroupsOf,
} from '../../../lib/core/config/resolve-run';
import type { RunSpec } from '../../../lib/core/config/run-spec';
import { BASE, runOf } from '../../support/runs';

const GPU = 'ml.p4d.24xlarge';
const CPU = 'ml.m5.xlarge';
const on = (instanceType: string, more: object = {}, compute: object = {}) =>
  runOf({ name: 'a', code: { source: './src' }, compute: { instanceType, ...compute }, ...more });
const processing = (source: string) => on(GPU, { kind: 'processing', code: { source } });
const code = (more: object) => ({ code: { source: './src', ...more } });

describe('the program is started', () => {
  test.each<[string, RunSpec, Partial<RunSpec['distribution']>]>([
    ['own Python code on GPUs', on(GPU), { launcher: 'torchrun', processesPerHost: 8, collectives: 'nccl' }],
    ['a shell script on GPUs', on(GPU, code({ entryPoint: 'run.sh' })), { launcher: 'script', processesPerHost: 1 }],
    ['own Python code on CPUs', on(CPU), { launcher: 'script', processesPerHost: 1, collectives: 'gloo' }],
    ['a library on CPUs', on(CPU, { distribution: { library: 'ddp' } }), { launcher: 'torchrun' }],
    ['the built-in trainer', on(GPU, { code: { source: 'builtin' } }), { library: 'fsdp', launcher: 'torchrun' }],
    ['tokenisation, without PyTorch', processing('builtin-tokenize'), { library: 'custom', launcher: 'script' }],
    ['a download, without PyTorch', processing('builtin-fetch'), { library: 'custom', launcher: 'script' }],
    ['SMP v1', on(GPU, { distribution: { library: 'smp-v1' } }), { launcher: 'mpi', contract: 'toolkit' }],
    ['a container of its own', on(GPU, code({ source: 'image' })), { launcher: 'script', contract: 'container' }],
    [
      'SMDDP by the toolkit',
      on(GPU, { distribution: { collectives: 'smddp', contract: 'toolkit' } }),
      { launcher: 'mpi', collectives: 'smddp', collectivesAuto: false },
    ],
    ['SMDDP by our driver', on(GPU, { distribution: { collectives: 'smddp' } }), { launcher: 'torchrun' }],
    ['an image of Hugging Face', on(GPU, { image: { kind: 'huggingface' } }), { contract: 'toolkit' }],
    ['processes as written', on(GPU, { distribution: { processesPerHost: 3 } }), { processesPerHost: 3 }],
  ])('%s', (_, run, wanted) => {
    expect(run.distribution).toMatchObject(wanted);
  });

  test('by the driver in processing jobs and under its own contract', () => {
    const by = (kind: RunSpec['kind'], contract: RunSpec['distribution']['contract']) =>
      startsByDriver({ kind, distribution: { ...on(GPU).distribution, contract } });
    expect([by('training', 'entrypoint'), by('processing', 'toolkit'), by('training', 'toolkit')]).toEqual([
      true,
      true,
      false,
    ]);
  });
});

test.each([
  ['ml.p4d.24xlarge', 'bf16'],
  ['ml.p3.16xlarge', 'fp16'],
  ['ml.g4dn.xlarge', 'fp16'],
  [CPU, 'fp32'],
  ['ml.unheardof.large', 'fp32'],
])('on %s the precision is %s', (type, precision) => {
  expect(on(type).training.precision).toBe(precision);
  expect(on(type, { training: { precision: 'fp32' } }).training.precision).toBe('fp32');
});

describe('hosts', () => {
  test('are examined quickly where our driver starts training on GPUs', () => {
    expect(healthCheckOf(on(GPU))).toBe('quick');
    expect(healthCheckOf(on(CPU))).toBe('off');
    expect(healthCheckOf(on(GPU, { distribution: { contract: 'toolkit' } }))).toBe('off');
    expect(healthCheckOf(on(GPU, { kind: 'processing' }))).toBe('off');
    expect(healthCheckOf(on(CPU, {}, { healthCheck: 'quick' }))).toBe('quick');
  });

  test('talk over EFA where the type has it and there are several', () => {
    const efa = (type: string, instanceCount: number) => on(type, {}, { instanceCount }).network.efa;
    expect([efa(GPU, 2), efa(GPU, 1), efa('ml.g5.xlarge', 2), efa(CPU, 2)]).toEqual(['required', 'off', 'off', 'off']);
  });

  const GROUPS = {
    instanceGroups: [
      { name: 'gpu', instanceType: GPU, instanceCount: 2 },
      { name: 'cpu', instanceType: CPU, instanceCount: 3 },
    ],
  };
  const grouped = (instanceGroups?: string[]) =>
    runOf({ ...BASE, compute: GROUPS, distribution: { library: 'fsdp', ...(instanceGroups && { instanceGroups }) } });

  test('train in the groups that are named, else in all', () => {
    expect(trainingGroupsOf(grouped(['cpu'])).map(({ name }) => name)).toEqual(['cpu']);
    expect(trainingGroupsOf(grouped()).map(({ name }) => name)).toEqual(['gpu', 'cpu']);
    expect([hasGpus(grouped(['cpu'])), hasGpus(grouped(['gpu'])), hasGpus(grouped())]).toEqual([false, true, true]);
    expect(hasGpus(on('ml.trn1.32xlarge'))).toBe(false);
  });

  test('that are spare are asked for beside the count and that of each alternative, not in groups', () => {
    const alternatives = [{ instanceType: CPU }, { instanceType: CPU, instanceCount: 7 }];
    const { compute } = on(GPU, {}, { instanceCount: 4, spareInstances: 2, alternatives });
    expect(requestedGroupsOf(compute)).toEqual([{ name: '', instanceType: GPU, instanceCount: 6 }]);
    expect(requestedAlternativesOf(compute).map(({ instanceCount }) => instanceCount)).toEqual([6, 9]);
    expect(requestedGroupsOf({ ...grouped().compute, spareInstances: 2 })).toEqual(GROUPS.instanceGroups);
  });

  test('of an elastic run are as many as it may have at most; on one host it needs no EFA, unless the file says so', () => {
    const elastic = on(GPU, {}, { instanceCount: { min: 1, max: 4 } });
    expect(elastic.compute).toMatchObject({ instanceCount: 4, elastic: { min: 1, max: 4 } });
    expect(onInstances(elastic, 1)).toMatchObject({ compute: { instanceCount: 1 }, network: { efa: 'off' } });
    expect(onInstances(elastic, 2).network.efa).toBe('required');
    const forced = on(GPU, { network: { efa: 'required' } }, { instanceCount: { min: 1, max: 4 } });
    expect(onInstances(forced, 1).network.efa).toBe('required');
    expect(on(GPU).compute).not.toHaveProperty('elastic');
  });
});

describe('limits', () => {
  const limits = (limits: object, compute: object = {}) => on(GPU, { limits }, compute).limits;

  test('spot waits a day beyond its own time, or as long as written; on demand waits for nothing', () => {
    const spot = { capacity: 'spot' };
    expect(limits({}, spot).maxWaitSeconds).toBe(432_000 + 86_400);
    expect(limits({ maxRuntimeSeconds: 3600 }, spot).maxWaitSeconds).toBe(3600 + 86_400);
    expect(limits({ maxWaitSeconds: 99_999 }, spot).maxWaitSeconds).toBe(99_999);
    expect(limits({}).maxWaitSeconds).toBeUndefined();
  });

  test('a training plan is a kind of capacity', () => {
    const arn = 'arn:aws:sagemaker:us-west-2:111122223333:training-plan/p';
    expect(on(GPU, {}, { trainingPlanArn: arn }).compute.capacity).toBe('training-plan');
    expect(on(GPU).compute.capacity).toBe('on-demand');
  });
});

describe('the length of a run', () => {
  const steps = (training: object) => totalSteps(on(GPU, { training }).training);

  test('is its steps, or its tokens by those of a step, rounded up', () => {
    const batch = { sequenceLength: 1000, globalBatchSize: 10 };
    expect(steps({ steps: 7, totalTokens: 1e9, ...batch })).toBe(7);
    expect(steps({ totalTokens: 100_000, ...batch })).toBe(10);
    expect(steps({ totalTokens: 100_001, ...batch })).toBe(11);
    expect(steps({ totalTokens: 100_000, ...batch, objective: 'dpo' })).toBe(5);
  });

  test('is unknown where one of them is', () => {
    expect(steps({})).toBeUndefined();
    expect(steps({ totalTokens: 100, sequenceLength: 1000 })).toBeUndefined();
    expect(steps({ totalTokens: 100, globalBatchSize: 10 })).toBeUndefined();
    expect(steps({ sequenceLength: 1000, globalBatchSize: 10 })).toBeUndefined();
  });
});

describe('checkpoints', () => {
  const RW = [
    { channel: 'fs', fsxLustre: { fileSystemId: 'fs-0123456789abcdef0', access: 'rw', directoryPath: '/a' } },
  ];

  test('go to S3 directly from the built-in trainer, are managed where own code has some, and none otherwise', () => {
    const mode = (more: object) => on(GPU, more).checkpoints.mode;
    expect(mode({ code: { source: 'builtin' } })).toBe('direct');
    expect(mode({ checkpoints: {} })).toBe('managed');
    expect(mode({})).toBe('none');
    expect(mode({ code: { source: 'builtin' }, checkpoints: { mode: 'none' } })).toBe('none');
  });

  test('stand where SageMaker puts them, or as written', () => {
    expect(on(GPU, { checkpoints: {} }).checkpoints).toMatchObject({ localPath: '/opt/ml/checkpoints', keep: 3 });
    expect(on(GPU, { checkpoints: { localPath: '/opt/ml/c', keep: 5 } }).checkpoints).toMatchObject({
      localPath: '/opt/ml/c',
      keep: 5,
    });
  });

  test('lie on the one file system that may be written to', () => {
    const channel = (data: object[], mode = 'fsx') => on(GPU, { data, checkpoints: { mode } }).checkpoints.channel;
    const file = (name: string, access: string) => ({
      ...RW[0],
      channel: name,
      fsxLustre: { ...RW[0]?.fsxLustre, access },
    });
    expect(channel([file('a', 'ro'), file('b', 'rw')])).toBe('b');
    expect(channel([file('a', 'rw'), file('b', 'rw')])).toBeUndefined();
    expect(channel([file('b', 'rw')], 'managed')).toBeUndefined();
  });
});

test('data of the built-in trainer is streamed unless the file says otherwise; that of own code is its own', () => {
  const mode = (source: string, more: object = {}) =>
    on(GPU, { code: { source }, data: [{ channel: 'train', s3: 's3://{dataBucket}/t/', ...more }] }).data[0]?.inputMode;
  expect(mode('builtin')).toBe('FastFile');
  expect(mode('builtin', { inputMode: 'File' })).toBe('File');
  expect(mode('./src')).toBeUndefined();
});

test('what is not written leaves no trace: the configuration hash of such a run stays what it was', () => {
  for (const key of ['preemptible', 'tokenizer', 'secrets']) expect(on(GPU)).not.toHaveProperty(key);
  expect(on(GPU, { secrets: {} })).not.toHaveProperty('secrets');
  expect(on(GPU, { preemptible: true }).preemptible).toBe(true);
  expect(on(GPU, { preemptible: false })).not.toHaveProperty('preemptible');
  expect(on(GPU, { secrets: { A: 'b' } }).secrets).toEqual({ A: 'b' });
  expect(on(GPU, { training: { lora: { rank: 4 } } }).training.lora).toEqual({
    rank: 4,
    alpha: 8,
    targets: ['q_proj', 'v_proj'],
  });
  expect(on(GPU).training).not.toHaveProperty('lora');
});
