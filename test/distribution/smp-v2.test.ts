import { expect, test } from 'vitest';
import { BASE, issuesOf } from '../support/runs';

const v2 = (parameters: object, training: object = {}, version = '2.5.1', type = 'ml.p5.48xlarge') => ({
  ...BASE,
  training,
  image: { kind: 'smp', version },
  compute: { instanceType: type, instanceCount: 2 },
  distribution: { library: 'smp-v2', parameters },
});

test('fails: FP8 before SMP 2.2.0', () => {
  const fp8 = { precision: 'fp8' };
  expect(issuesOf(v2({}, fp8, '2.1.2'), 'smp-v2/fp8-release')).toMatchObject([{ path: 'training.precision' }]);
  expect(issuesOf(v2({}, fp8, '2.2.0'), 'smp-v2/fp8-release')).toEqual([]);
});

test('offloading asked for by its own parameter is warned of on SMP 2.2.0', () => {
  expect(issuesOf(v2({ sm_activation_offloading: true }, {}, '2.2.0'), 'smp-v2/offload-release')).toHaveLength(1);
  expect(issuesOf(v2({}, {}, '2.2.0'), 'smp-v2/offload-release')).toEqual([]);
});

test.each([
  [v2({}, { precision: 'fp32' }), 'smp-v2/advice-precision'],
  [v2({}, {}, '2.5.1', 'ml.p4d.24xlarge'), 'smp-v2/advice-collectives'],
  [{ ...v2({}), model: { preset: 'llama3-70b' } }, 'smp-v2/advice-delayed-init'],
  [v2({}, { activationCheckpointing: 'none' }), 'smp-v2/advice-checkpointing'],
  [v2({ hybrid_shard_degree: 16 }), 'smp-v2/advice-shard-degree'],
  [v2({ tensor_parallel_degree: 2 }, { sequenceLength: 4096 }), 'smp-v2/advice-tensor'],
])('advice %#: %s', (file, rule) => {
  expect(issuesOf(file, rule)).toMatchObject([{ level: 'info' }]);
});

test('nothing of it is said where it is followed', () => {
  const parameters = { hybrid_shard_degree: 4, tensor_parallel_degree: 2 };
  expect(issuesOf(v2(parameters, { sequenceLength: 8192 }), 'smp-v2/advice')).toEqual([]);
});
