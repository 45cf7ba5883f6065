// Places where rules of SMP and Ray begin: the last value that is allowed beside the first one that is not.
import { expect, test } from 'vitest';
import { BASE, issuesOf } from '../support/runs';

const smp = (distribution: object, more: object = {}) => ({
  ...BASE,
  image: { kind: 'smp', version: '2.4.1' },
  ...more,
  distribution: { library: 'smp-v2', ...distribution },
});

test('SMP v2 under the toolkit contract takes no instance groups', () => {
  const groups = { instanceGroups: [{ name: 'a', instanceType: 'ml.p4d.24xlarge', instanceCount: 2 }] };
  const found = (contract: string, compute: object) =>
    issuesOf(smp({ contract }, { compute }), 'smp-v2/instance-groups').map((i) => i.message);
  expect(found('toolkit', groups)).toEqual([
    expect.stringMatching(/^compute.instanceGroups: must be absent .*, got \["a"\]; use/),
  ]);
  expect(found('toolkit', BASE.compute)).toEqual([]);
  expect(found('entrypoint', groups)).toEqual([]);
});

test.each([
  ['2.2.0', 'fp8', 0],
  ['2.2.0', 'bf16', 0],
  ['2.0.1', 'bf16', 0],
  ['2.0.1', 'fp8', 1],
])('FP8 by the release: image %s with %s', (version, precision, count) => {
  const file = smp({}, { image: { kind: 'smp', version }, training: { precision } });
  expect(issuesOf(file, 'smp-v2/fp8-release')).toHaveLength(count);
});

test.each([
  ['none', 2, 1],
  ['none', 1, 0],
  ['managed', 2, 0],
])('checkpoints under Ray: %s on %i hosts', (mode, instanceCount, count) => {
  const compute = { instanceType: 'ml.g5.48xlarge', instanceCount };
  const file = { ...BASE, compute, distribution: { launcher: 'ray' }, checkpoints: { mode } };
  expect(issuesOf(file, 'ray/checkpoints')).toHaveLength(count);
});

test('options of ddp go with ddp: true', () => {
  const found = (parameters: object) =>
    issuesOf({ ...BASE, distribution: { library: 'smp-v1', parameters: { partitions: 2, ...parameters } } }, 'smp-v1/')
      .map((i) => i.message)
      .filter((message) => /ddp: true|together with ddp/.test(message));
  expect(found({ ddp_port: 8888 })).toEqual([
    'distribution.parameters.ddp_port: must go with ddp: true, got 8888; add ddp: true',
  ]);
  expect(found({ ddp: true, ddp_port: 8888 })).toEqual([]);
  expect(found({ ddp: true, horovod: true })).toEqual([
    'distribution.parameters.horovod: must not be on together with ddp, got true; remove it',
  ]);
  expect(found({ horovod: true })).toEqual([]);
});
