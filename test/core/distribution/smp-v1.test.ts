import { describe, expect, test } from 'vitest';
import { findStrategy } from '../../../lib/core/distribution';
import { BASE, issuesOf, runOf } from '../../support/runs';

const v1 = (parameters: object, image: object = { kind: 'dlc', version: '1.13.1' }, rest: object = {}) => ({
  ...BASE,
  image,
  distribution: { library: 'smp-v1', processesPerHost: 8, parameters },
  ...rest,
});
const OLD = { kind: 'dlc', version: '1.10.2' };
const model = { preset: 'llama2-13b' };

test.each([
  [{ ddp: true, sharded_data_parallel_degree: 8 }, 'sharded_data_parallel_degree'],
  [{ ddp: true, ddp_dist_backend: 'auto' }, 'ddp_dist_backend'],
])('fails: %j before the release that brought it', (parameters, key) => {
  expect(issuesOf(v1(parameters, OLD), 'smp-v1/release')).toMatchObject([
    { level: 'error', path: `distribution.parameters.${key}` },
  ]);
  expect(issuesOf(v1(parameters), 'smp-v1/release')).toEqual([]);
});

test('one sequence with several microbatches is warned of only', () => {
  const parameters = { pipeline_parallel_degree: 2, microbatches: 4 };
  const training = { microBatchSize: 1 };
  expect(issuesOf(v1(parameters, undefined, { training }), 'smp-v1/microbatches')).toMatchObject([
    { level: 'warning', path: 'training.microBatchSize' },
  ]);
});

describe('advice', () => {
  test.each([
    [{}, 'smp-v1/advice-optimizer-state'],
    [{ pipeline_parallel_degree: 2 }, 'smp-v1/advice-order'],
    [{ pipeline_parallel_degree: 2 }, 'smp-v1/advice-microbatches'],
    [{ ddp: true, tensor_parallel_degree: 2 }, 'smp-v1/advice-batch-first'],
    [{}, 'smp-v1/advice-file-system'],
  ])('%j: %s', (parameters, rule) => {
    const file = v1(parameters, undefined, { model, training: { microBatchSize: 4 } });
    expect(issuesOf(file, rule)).toMatchObject([{ level: 'info' }]);
  });

  test('nothing of it is said where it is followed', () => {
    const parameters = {
      ddp: true,
      tensor_parallel_degree: 8,
      pipeline_parallel_degree: 2,
      microbatches: 4,
      prescaled_batch: true,
      shard_optimizer_state: true,
    };
    expect(issuesOf(v1(parameters), 'smp-v1/advice')).toEqual([]);
  });

  test.each([
    ['EleutherAI/gpt-neox-20b', 'warning'],
    ['EleutherAI/gpt-j-6b', 'info'],
  ])('tensor parallelism of %s in the image of PyTorch 1.10.2: %s', (name, level) => {
    const rest = { hyperparameters: { model_name_or_path: name } };
    const file = v1({ ddp: true, tensor_parallel_degree: 8 }, OLD, rest);
    expect(issuesOf(file, 'smp-v1/hugging-face-model')).toMatchObject([{ level }]);
  });
});

test('the only group of a cluster is named, as the SDK does', () => {
  const compute = { instanceGroups: [{ name: 'g1', instanceType: 'ml.p4d.24xlarge', instanceCount: 2 }] };
  const run = runOf(v1({}, undefined, { compute }));
  expect(findStrategy(run)?.hyperparameters(run)).toMatchObject({ sagemaker_distribution_instance_groups: ['g1'] });
});

test.each([
  [{ bf16: true, sharded_data_parallel_degree: 1 }, ['bf16: must be used with sharded_data_parallel_degree above 1']],
  [{ bf16: true, sharded_data_parallel_degree: 2 }, []],
  [{ bf16: true, fp16: true, sharded_data_parallel_degree: 2 }, ['fp16: must not be on together with bf16']],
  [{ fp16: true }, []],
])('precision of SMP v1: %j', (parameters, said) => {
  const found = issuesOf(v1({ ddp: true, ...parameters }), 'smp-v1/precision').map(({ message }) => message);
  expect(found.map((text) => text.replace('distribution.parameters.', '').replace(/, got.*/, ''))).toEqual(said);
});

test('fails: images of SMP v2, and of a PyTorch without SMP v1, each at its own option', () => {
  const found = (image: object) =>
    issuesOf(v1({}, image), 'smp-v1/').flatMap(({ path, message }) =>
      /PyTorch|kind/.test(message) && path.startsWith('image') ? [path] : [],
    );
  expect(found({ kind: 'smp', version: '2.4.1' })).toEqual(['image.kind']);
  expect(found({ kind: 'dlc', version: '2.5.1' })).toEqual(['image.version']);
  expect(found({ kind: 'dlc', version: '1.13.1' })).toEqual([]);
});
