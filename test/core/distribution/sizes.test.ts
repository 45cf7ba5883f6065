// Which size a message about parallel sizes names, and which collectives are advised. The cluster has 2 instances of 8 GPUs.
import { describe, expect, test } from 'vitest';
import { pythonJson } from '../../../lib/core/distribution/python-json';
import { BASE, issuesOf } from '../../support/runs';

const file = (library: string, parameters: object, rest: object = {}) => ({
  ...BASE,
  distribution: { library, parameters },
  ...rest,
});
const words = (of: object, rule: string) =>
  issuesOf(of, rule).map(({ message }) => message.replace('distribution.parameters.', ''));

describe('sizes of Megatron-LM whose product does not divide the ranks', () => {
  const [TP, PP, CP] = ['tensor-model-parallel-size', 'pipeline-model-parallel-size', 'context-parallel-size'];
  test.each<[Record<string, number>, string, string]>([
    [{ [TP]: 3 }, TP, '3 x 1 x 1 = 3'],
    [{ [PP]: 3 }, PP, '1 x 3 x 1 = 3'],
    [{ [CP]: 3 }, CP, '1 x 1 x 3 = 3'],
    [{ [TP]: 4, [CP]: 3 }, CP, '4 x 1 x 3 = 12'],
    // Each of them divides 16, and their product does not.
    [{ [TP]: 8, [PP]: 4 }, PP, '8 x 4 x 1 = 32'],
    [{ [TP]: 8, [CP]: 4 }, TP, '8 x 1 x 4 = 32'],
  ])('%j: the message is at %s', (parameters, name, got) => {
    expect(words(file('megatron', parameters), 'megatron/degrees')).toEqual([
      `${name}: must make tensor x pipeline x context a divisor of the world size 16, got ${got}; use sizes whose product is 1, 2, 4, 8 or 16`,
    ]);
  });

  test('are accepted where it does', () => {
    expect(words(file('megatron', { [TP]: 8, [PP]: 2 }), 'megatron/degrees')).toEqual([]);
  });
});

describe('SMP v2', () => {
  const P4D = { instanceType: 'ml.p4d.24xlarge', instanceCount: 2 };
  const advised = (parameters: object, compute: object = P4D, collectives?: string) =>
    issuesOf(
      { ...BASE, compute, distribution: { library: 'smp-v2', parameters, ...(collectives && { collectives }) } },
      'smp-v2/advice-collectives',
    ).length === 1;

  test.each([
    [{}, true],
    [{ hybrid_shard_degree: 8 }, true],
    [{ hybrid_shard_degree: 1 }, true],
    [{ hybrid_shard_degree: 8, tensor_parallel_degree: 2 }, true],
    [{ hybrid_shard_degree: 1, tensor_parallel_degree: 2 }, false],
  ])('with %j on several P4d SMDDP is advised: %s', (parameters, is) => {
    expect(advised(parameters)).toBe(is);
  });

  test('is not advised SMDDP on one instance, on a type that it does not serve, or where it has it', () => {
    expect(advised({}, { ...P4D, instanceCount: 1 })).toBe(false);
    expect(advised({}, { ...P4D, instanceType: 'ml.p5.48xlarge' })).toBe(false);
    expect(advised({}, P4D, 'smddp')).toBe(false);
  });

  test('names one degree that does not divide the ranks, before it speaks of their product', () => {
    const paths = (parameters: object) =>
      issuesOf(file('smp-v2', parameters), 'smp-v2/').flatMap(({ level, path }) => (level === 'error' ? [path] : []));
    expect(paths({ tensor_parallel_degree: 3, hybrid_shard_degree: 2 })).toEqual([
      'distribution.parameters.tensor_parallel_degree',
    ]);
    expect(paths({ tensor_parallel_degree: 8, hybrid_shard_degree: 4 })).toEqual([
      'distribution.parameters.hybrid_shard_degree',
    ]);
    expect(paths({ tensor_parallel_degree: 2, hybrid_shard_degree: 4 })).toEqual([]);
  });

  test('under the toolkit contract names the groups that it cannot have', () => {
    const instanceGroups = ['a', 'b'].map((name) => ({ name, instanceType: 'ml.p4d.24xlarge', instanceCount: 1 }));
    const of = (contract: string) => ({
      ...BASE,
      compute: { instanceGroups },
      distribution: { library: 'smp-v2', contract },
    });
    expect(words(of('toolkit'), 'smp-v2/instance-groups')).toEqual([
      'compute.instanceGroups: must be absent for smp-v2 under the toolkit contract, got ["a","b"]; use compute.instanceType, or distribution.contract entrypoint',
    ]);
    expect(words(of('entrypoint'), 'smp-v2/instance-groups')).toEqual([]);
  });
});

test('SMP v1 refuses bf16 without shards', () => {
  const said = words(file('smp-v1', { bf16: true }, { image: { kind: 'dlc' } }), 'smp-v1/');
  expect(said).toContain(
    'bf16: must be used with sharded_data_parallel_degree above 1, got true; use fp16: true, or shard',
  );
});

test.each([
  [null, 'null'],
  [undefined, 'null'],
  [[null, { a: undefined }], '[null, {"a": null}]'],
])('%j is the null of Python', (value, text) => {
  expect(pythonJson(value)).toBe(text);
});
