// What each strategy hands SageMaker, whole: the hyperparameters that the SDK sends, and the layout that plans and rules count with.
import { expect, test } from 'vitest';
import { findStrategy } from '../../../lib/core/distribution';
import { BASE, issuesOf, runOf } from '../../support/runs';

const strategyOf = (distribution: object, rest: object = {}) => {
  const run = runOf({ ...BASE, ...rest, distribution: { processesPerHost: 8, ...distribution } });
  const found = findStrategy(run);
  if (!found) throw new Error('no strategy');
  return { name: found.name, hyperparameters: found.hyperparameters(run), layout: found.layout?.(run) };
};
const TOOLKIT = { contract: 'toolkit' };
const OPTIONS = '-x NCCL_DEBUG=INFO';

test('mpirun gets its options, and the processes of a host only where the file says them', () => {
  const mpi = { library: 'custom', launcher: 'mpi', mpiOptions: OPTIONS, ...TOOLKIT };
  const sent = { sagemaker_mpi_enabled: true, sagemaker_mpi_custom_mpi_options: OPTIONS };
  expect(strategyOf(mpi)).toMatchObject({
    name: 'mpi',
    hyperparameters: { ...sent, sagemaker_mpi_num_of_processes_per_host: 8 },
  });
  const unsaid = runOf({ ...BASE, distribution: mpi });
  expect(findStrategy(unsaid)?.hyperparameters(unsaid)).toStrictEqual(sent);
});

test('groups that train are named beside', () => {
  const instanceGroups = ['a', 'b'].map((name) => ({ name, instanceType: 'ml.p4d.24xlarge', instanceCount: 1 }));
  const compute = { instanceGroups };
  const mpi = { library: 'custom', launcher: 'mpi', instanceGroups: ['b'], ...TOOLKIT };
  expect(strategyOf(mpi, { compute }).hyperparameters).toEqual({
    sagemaker_distribution_instance_groups: ['b'],
    sagemaker_mpi_enabled: true,
    sagemaker_mpi_custom_mpi_options: '',
    sagemaker_mpi_num_of_processes_per_host: 8,
  });
});

test('SMDDP under mpirun: the type of the instances, and the layout of the library it serves', () => {
  const smddp = { launcher: 'mpi', collectives: 'smddp', mpiOptions: OPTIONS, ...TOOLKIT };
  const ddp = strategyOf({ library: 'ddp', ...smddp });
  expect(ddp).toMatchObject({ name: 'smddp', layout: { worldSize: 16, shard: 1, replicate: 16, dataParallel: 16 } });
  expect(ddp.hyperparameters).toEqual({
    sagemaker_distributed_dataparallel_enabled: true,
    sagemaker_instance_type: 'ml.p4d.24xlarge',
    sagemaker_distributed_dataparallel_custom_mpi_options: OPTIONS,
  });
  const fsdp = strategyOf({ library: 'fsdp', ...smddp, parameters: { shard_degree: 8 } });
  expect(fsdp.layout).toMatchObject({ shard: 8, replicate: 2, dataParallel: 16 });
});

test.each([
  ['fsdp', 'mpi', '', [`got ''; add "-x SMDATAPARALLEL_OPTIMIZE_SDP=true"`]],
  ['deepspeed', 'mpi', OPTIONS, [`got ${OPTIONS}; add "-x SMDATAPARALLEL_OPTIMIZE_SDP=true"`]],
  ['fsdp', 'mpi', '-x SMDATAPARALLEL_OPTIMIZE_SDP=true', []],
  ['fsdp', 'torchrun', '', []],
  ['ddp', 'mpi', '', []],
])('AllGather of %s under %s with mpiOptions "%s"', (library, launcher, mpiOptions, said) => {
  const distribution = { library, launcher, collectives: 'smddp', mpiOptions, ...(launcher === 'mpi' && TOOLKIT) };
  const found = issuesOf({ ...BASE, distribution }, 'smddp/allgather-option');
  expect(found.map(({ message }) => message.replace(/^.*, got/, 'got'))).toEqual(said);
});

test('AllGather asked for in the environment is asked for', () => {
  const distribution = { library: 'fsdp', launcher: 'mpi', collectives: 'smddp', ...TOOLKIT };
  const file = { ...BASE, distribution, environmentVariables: { SMDATAPARALLEL_OPTIMIZE_SDP: 'true' } };
  expect(issuesOf(file, 'smddp/allgather-option')).toEqual([]);
});

const sizes = (tensor: number, pipeline: number, context = 1) => ({
  'tensor-model-parallel-size': tensor,
  'pipeline-model-parallel-size': pipeline,
  'context-parallel-size': context,
});
test.each([
  [sizes(2, 2), { tensor: 2, pipeline: 2, context: 1, expert: 1, shard: 1, replicate: 4, dataParallel: 4 }],
  [sizes(2, 1, 2), { tensor: 2, pipeline: 1, context: 2, expert: 1, shard: 1, replicate: 4, dataParallel: 4 }],
  [
    { ...sizes(4, 2), 'use-distributed-optimizer': true },
    { shard: 2, replicate: 1, dataParallel: 2 },
  ],
])('Megatron-LM with %j', (parameters, layout) => {
  const found = strategyOf({ library: 'megatron', parameters });
  expect(found.layout).toMatchObject({ worldSize: 16, ...layout });
  expect(found.hyperparameters).toMatchObject(parameters);
});

test('sizes of Megatron-LM that do not divide the cluster have no layout', () => {
  expect(strategyOf({ library: 'megatron', parameters: sizes(3, 2) }).layout).toBeUndefined();
});

test('SMP v2 gets its parameters, and where there are none no empty ones', () => {
  const image = { kind: 'smp', version: '2.5.1' };
  const common = {
    sagemaker_torch_distributed_enabled: true,
    sagemaker_distributed_dataparallel_enabled: false,
    sagemaker_instance_type: 'ml.p4d.24xlarge',
  };
  const parameters = { hybrid_shard_degree: 8 };
  expect(strategyOf({ library: 'smp-v2' }, { image }).hyperparameters).toStrictEqual(common);
  expect(strategyOf({ library: 'smp-v2', parameters }, { image }).hyperparameters).toStrictEqual({
    ...common,
    mp_parameters: parameters,
  });
  const run = runOf({ ...BASE, image, distribution: { library: 'smp-v2', parameters } });
  expect(findStrategy(run)?.environment?.(run)).toEqual({ SM_HP_MP_PARAMETERS: '{"hybrid_shard_degree": 8}' });
  const bare = runOf({ ...BASE, image, distribution: { library: 'smp-v2' } });
  expect(findStrategy(bare)?.environment?.(bare)).toEqual({});
});

test('flags are written as they are meant', () => {
  const parameters = {
    bf16: true,
    fp16: false,
    '--num-layers': 4,
    'data-path': ['a', 'b'],
    extra: { a: 1 },
    none: null,
  };
  const run = runOf({ ...BASE, distribution: { library: 'megatron', parameters } });
  expect(findStrategy(run)?.arguments?.(run)).toEqual([
    '--bf16',
    '--num-layers',
    '4',
    '--data-path',
    'a',
    '--data-path',
    'b',
    '--extra',
    '{"a":1}',
    '--none',
    '',
  ]);
});
