import { expect, test } from 'vitest';
import { findStrategy } from '../../../lib/core/distribution';
import { compilesByDefault, fsdpCompiles } from '../../../lib/core/distribution/fsdp';
import { instanceTypeOfImage } from '../../../lib/core/distribution/image-version';
import { degree } from '../../../lib/core/distribution/strategy';
import { domainNodesOf, hostsOfDomain } from '../../../lib/core/distribution/ultra-servers';
import { BASE, runOf } from '../../support/runs';

const GB200 = 'ml.p6e-gb200.36xlarge';

test.each([
  [18, 18],
  [12, 12],
  [36, 18],
  [34, 17],
  [27, 9],
  [19, 1],
])('%i instances of UltraServers form NVLink domains of %i', (nodes, domain) => {
  expect(domainNodesOf(GB200, nodes, undefined)).toBe(domain);
});

test('the image is built for the first type with GPUs, wherever its group stands', () => {
  const group = (name: string, instanceType: string) => ({ name, instanceType, instanceCount: 1 });
  const on = (...types: string[]) => {
    const instanceGroups = types.map((type, i) => group(`g${i}`, type));
    return instanceTypeOfImage(runOf({ ...BASE, compute: { instanceGroups } }));
  };
  expect(on('ml.c5.18xlarge', 'ml.p4d.24xlarge', 'ml.p5.48xlarge')).toBe('ml.p4d.24xlarge');
  expect(on('ml.trn1.32xlarge', 'ml.p4d.24xlarge')).toBe('ml.p4d.24xlarge');
  expect(on('ml.c5.18xlarge', 'ml.m5.xlarge')).toBe('ml.c5.18xlarge');
});

test('the built-in trainer compiles dense models under FSDP2 unless the run says otherwise', () => {
  const builtin = (preset: string, distribution: object = {}, code: object = {}) =>
    compilesByDefault(
      runOf({
        ...BASE,
        code: { source: 'builtin', ...code },
        model: { preset },
        distribution: { library: 'fsdp', ...distribution },
      }),
    );
  expect(builtin('llama3-8b')).toBe(true);
  expect([
    builtin('mixtral-8x7b'),
    builtin('llama3-8b', { parameters: { compile: false } }),
    builtin('llama3-8b', { collectives: 'smddp' }),
    builtin('llama3-8b', {}, { arguments: { backend: 'fsdp1' } }),
    builtin('llama3-8b', { library: 'ddp' }),
    builtin('llama3-8b', { collectives: 'gloo' }),
  ]).toEqual([false, false, false, false, false, false]);
  expect(compilesByDefault(runOf(BASE))).toBe(false);
  expect(compilesByDefault(runOf({ ...BASE, distribution: { library: 'fsdp' } }))).toBe(false);
});

test('FSDP compiles as the run says, else what it compiles by default without tensor parallelism', () => {
  const compiles = (parameters: object, source = 'builtin') =>
    fsdpCompiles(
      runOf({
        ...BASE,
        code: { source },
        model: { preset: 'llama3-8b' },
        distribution: { library: 'fsdp', parameters },
      }),
    );
  expect([compiles({}), compiles({ tensor_parallel_degree: 1 }), compiles({ compile: true }, './src')]).toEqual(
    Array(3).fill(true),
  );
  expect([compiles({ tensor_parallel_degree: 2 }), compiles({ compile: false }), compiles({}, './src')]).toEqual(
    Array(3).fill(false),
  );
});

test('a degree is a whole number, or the fallback', () => {
  const given = (value: unknown) => degree(runOf({ ...BASE, distribution: { parameters: { d: value } } }), 'd', 3);
  expect([given(2), given(0), given(2.5), given('2'), given(null)]).toEqual([2, 0, 3, 3, 3]);
});

test.each([
  [undefined, 1],
  [0, 1],
  [1, 16],
  [3, 16],
])('ZeRO of stage %s shards over %i ranks', (stage, shard) => {
  const parameters = stage === undefined ? {} : { zero_optimization: { stage } };
  const run = runOf({ ...BASE, distribution: { library: 'deepspeed', parameters } });
  expect(findStrategy(run)?.layout(run)).toMatchObject({ worldSize: 16, shard, replicate: 16 / shard });
});

test('NVLink joins hosts of one group of UltraServers, and no others', () => {
  const group = (name: string) => ({ name, instanceType: GB200, instanceCount: 4 });
  const on = (compute: object) => hostsOfDomain(runOf({ ...BASE, compute }));
  expect(on({ instanceType: GB200, instanceCount: 4 })).toBe(4);
  expect(on({ instanceGroups: [group('a')] })).toBe(4);
  expect(on({ instanceGroups: [group('a'), group('b')] })).toBe(1);
  expect(on({ instanceType: 'ml.p5.48xlarge', instanceCount: 4 })).toBe(1);
});
