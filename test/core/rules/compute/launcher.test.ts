import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasLocalNvme, INSTANCE_TYPES } from '../../../../lib/core/catalog/instances/instances';
import { BASE, DESCRIPTOR, issuesOf } from '../../../support/runs';

const gpu = { name: 'gpu', instanceType: 'ml.p4d.24xlarge', instanceCount: 2 };
const cpu = { name: 'cpu', instanceType: 'ml.c5.18xlarge', instanceCount: 4 };
const cluster = (instanceGroups: object[], distribution: object) => ({
  ...BASE,
  compute: { instanceGroups },
  distribution,
});

test('parameters that the script would not see under the toolkit contract are warned of', () => {
  const file = (library: string) => ({
    ...BASE,
    distribution: { library, contract: 'toolkit', parameters: { shard_degree: 8 } },
  });
  expect(issuesOf(file('fsdp'), 'launcher/toolkit-parameters')).toMatchObject([{ level: 'warning' }]);
  expect(issuesOf(file('megatron'), 'launcher/toolkit-parameters')).toEqual([]);
});

describe('instance groups', () => {
  test('fails: a group that is named twice', () => {
    const found = issuesOf(cluster([gpu, cpu], { instanceGroups: ['gpu', 'gpu'] }), 'launcher/instance-groups');
    expect(found.map((i) => i.message)).toEqual([
      'distribution.instanceGroups[1]: must be listed once, got gpu; remove it',
    ]);
  });

  test('hosts with and without accelerators in one launcher are warned of, with the group to name', () => {
    const found = issuesOf(cluster([gpu, cpu], { library: 'fsdp' }), 'launcher/mixed-groups');
    expect(found).toMatchObject([{ level: 'warning', message: expect.stringMatching(/use \[gpu\]$/) }]);
  });

  test('hosts with and without EFA that train together are warned of', () => {
    const sockets = { name: 'old', instanceType: 'ml.p3.16xlarge', instanceCount: 2 };
    const found = issuesOf(cluster([gpu, sockets], { library: 'fsdp' }), 'launcher/mixed-groups');
    expect(found).toMatchObject([
      {
        level: 'warning',
        message: expect.stringContaining('must contain groups whose hosts have EFA, or no host with it'),
      },
    ]);
  });

  test('local storage of some types only is warned of in an environment with a key, for all types of the catalog', () => {
    const type = fc.constantFrom(...INSTANCE_TYPES.map(({ name }) => name));
    fc.assert(
      fc.property(type, type, (first, second) => {
        const file = cluster(
          [
            { ...gpu, instanceType: first },
            { ...cpu, instanceType: second },
          ],
          {},
        );
        const isMixed = hasLocalNvme(first) !== hasLocalNvme(second);
        const said = issuesOf(file, 'compute/mixed-storage', { descriptor: DESCRIPTOR });
        expect([first, second, said.length]).toEqual([first, second, isMixed ? 1 : 0]);
        const without = { ...DESCRIPTOR, kmsKeyArn: undefined };
        expect(issuesOf(file, 'compute/mixed-storage', { descriptor: without })).toEqual([]);
      }),
      { numRuns: 60, verbose: 1 },
    );
  });

  test.each([
    ['the group that trains is named', [gpu, cpu], { instanceGroups: ['gpu'] }],
    ['all have as many', [gpu, { ...gpu, name: 'more', instanceType: 'ml.p4de.24xlarge' }], {}],
  ])('%s: nothing is said', (_why, groups, distribution) => {
    expect(issuesOf(cluster(groups, { library: 'fsdp', ...distribution }), 'launcher/')).toEqual([]);
  });

  test('a name is any text that the service takes', () => {
    const named = cluster([{ ...gpu, name: 'gpu_1 (a)' }], { instanceGroups: ['gpu_1 (a)'] });
    expect(issuesOf(named, 'launcher/')).toEqual([]);
  });

  test('fails: several groups under torchrun of the toolkit contract; one may', () => {
    const under = (groups: object[]) =>
      issuesOf(
        cluster(groups, { library: 'custom', launcher: 'torchrun', contract: 'toolkit', instanceGroups: ['gpu'] }),
        'launcher/instance-groups',
      );
    expect(under([gpu, cpu])).toMatchObject([{ path: 'distribution.launcher' }]);
    expect(under([gpu])).toEqual([]);
  });
});

describe('torchrun under the toolkit contract', () => {
  const registry = '763104351884.dkr.ecr.us-west-2.amazonaws.com';
  const old = { kind: 'uri', uri: `${registry}/pytorch-training:1.12.1-gpu-py38` };
  const found = (image: object, instanceType: string) =>
    issuesOf(
      {
        ...BASE,
        image,
        compute: { instanceType },
        distribution: { library: 'custom', launcher: 'torchrun', contract: 'toolkit' },
      },
      'launcher/toolkit-torchrun',
    ).map(({ level, path }) => `${level} ${path}`);

  test.each([
    [{ kind: 'dlc', version: '2.5.1' }, 'ml.c5.9xlarge', ['error compute.instanceType']],
    [{ kind: 'dlc', version: '1.12.1' }, 'ml.p4d.24xlarge', ['error image.version']],
    [old, 'ml.p4d.24xlarge', ['warning image.uri']],
  ])('fails: %j on %s', (image, type, said) => {
    expect(found(image, type)).toEqual(said);
  });

  test.each([
    [{ kind: 'environment' }, 'ml.c5.9xlarge'],
    [{ kind: 'dlc', version: '1.11.0' }, 'ml.trn1.32xlarge'],
  ])('%j on %s: nothing is said', (image, type) => {
    expect(found(image, type)).toEqual([]);
  });
});
