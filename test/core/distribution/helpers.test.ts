// The small functions that rules, layouts and requests share, at both sides of their limits.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findStrategy, LIBRARIES } from '../../../lib/core/distribution';
import { compareVersions, pytorchOfImage } from '../../../lib/core/distribution/image-version';
import {
  contradictsPrecision,
  divisorsUpTo,
  nearestMultiple,
  parameterFindings,
} from '../../../lib/core/distribution/parameters';
import { commonDivisor, domainNodesOf } from '../../../lib/core/distribution/ultra-servers';
import { BASE, runOf } from '../../support/runs';

test('divisors are all numbers up to the limit that divide, ascending', () => {
  expect([
    divisorsUpTo(12, 12),
    divisorsUpTo(12, 6),
    divisorsUpTo(12, 5),
    divisorsUpTo(1, 64),
    divisorsUpTo(4, 64),
  ]).toEqual([[1, 2, 3, 4, 6, 12], [1, 2, 3, 4, 6], [1, 2, 3, 4], [1], [1, 2, 4]]);
});

test.each([
  [7, 16, 16],
  [23, 16, 16],
  [24, 16, 32],
  [0, 16, 16],
  [64, 16, 64],
])('the multiple nearest to %i of %i is %i', (value, unit, multiple) =>
  expect(nearestMultiple(value, unit)).toBe(multiple),
);

test.each([
  [undefined, 'bf16', false],
  ['bf16', undefined, false],
  ['bf16', 'bf16', false],
  ['fp8', 'bf16', false],
  ['mxfp8', 'bf16', false],
  ['nvfp4', 'bf16', false],
  ['fp8', 'fp16', true],
  ['fp32', 'bf16', true],
  ['bf16', 'fp16', true],
] as const)('precision %s beside %s contradicts it: %s', (written, theirs, is) =>
  expect(contradictsPrecision(written, theirs)).toBe(is),
);

test.each([
  ['2.5.1', '2.5.1', 0],
  ['2.5', '2.5.0', 0],
  ['2.10', '2.9', 1],
  ['1.13.1', '2.0.0', -1],
  ['2.5.0', '2.5.1', -1],
  ['3', '2.99.99', 1],
])('version %s beside %s: %i', (a, b, sign) => expect(Math.sign(compareVersions(a, b))).toBe(sign));

describe('the PyTorch of an image', () => {
  const of = (image: object) => pytorchOfImage(runOf({ ...BASE, image }));
  test.each([
    [{ kind: 'environment' }, undefined],
    [{ kind: 'environment', version: '2.5.1' }, undefined],
    [{ kind: 'dlc' }, undefined],
    [{ kind: 'dlc', version: '2.5' }, '2.5.1'],
    [{ kind: 'dlc', version: '9.9.9' }, '9.9.9'],
    [{ kind: 'smp', version: '2.3.1' }, '2.3.1'],
    [{ kind: 'huggingface', version: '4.49.0' }, '2.5.1'],
    [{ kind: 'huggingface', version: '9.9.9' }, undefined],
    [{ kind: 'uri' }, undefined],
    [{ kind: 'uri', uri: 'a.example.com/pytorch:2.12.1-cu130' }, '2.12.1'],
    [{ kind: 'uri', uri: 'a.example.com/pytorch-training:2.1-gpu' }, '2.1'],
    [{ kind: 'uri', uri: 'a.example.com/smdistributed-modelparallel:2.2.0-gpu' }, '2.2.0'],
    [{ kind: 'uri', uri: 'a.example.com/my-pytorch:2.2.0' }, undefined],
  ])('%j: %s', (image, version) => expect(of(image)).toBe(version));
});

describe('UltraServers', () => {
  const GB200 = 'ml.p6e-gb200.36xlarge';
  const placed = (...counts: number[]) => ({ ultraServers: counts.map((instanceCount) => ({ instanceCount })) });
  test.each([
    [GB200, 18, placed(), 18],
    [GB200, 8, placed(4, 4), 4],
    [GB200, 8, placed(4), 4],
    [GB200, 9, placed(4, 4), 1],
    [GB200, 10, placed(4), 2],
    [GB200, 12, placed(6, 6), 6],
    [GB200, 19, undefined, 1],
    [GB200, 51, undefined, 17],
    [GB200, 54, undefined, 18],
    [GB200, 20, undefined, 2],
    ['ml.p5.48xlarge', 8, placed(4, 4), 1],
    ['ml.unknown', 8, undefined, 1],
  ])('%s: %i instances with %j have domains of %i', (type, nodes, placement, domain) =>
    expect(domainNodesOf(type, nodes, placement as never)).toBe(domain),
  );

  test('the common divisor divides both numbers, and no larger one does', () => {
    const positive = fc.integer({ min: 1, max: 500 });
    fc.assert(
      fc.property(positive, positive, (a, b) => {
        const common = divisorsUpTo(a, a).filter((d) => b % d === 0);
        expect(commonDivisor(a, b)).toBe(Math.max(...common));
      }),
    );
  });
});

test('a parameter is judged by its type and range', () => {
  const known = {
    any: { type: 'number' },
    upTo: { type: 'int', max: 4 },
    between: { type: 'number', min: 0, max: 1 },
    text: { type: 'string' },
    one: { type: 'enum', values: ['1', 'a'] },
  } as const;
  const judge = (given: object) =>
    parameterFindings(given as never, known, { library: 'x' }).map(({ path, must, fix }) => `${path} ${must}; ${fix}`);
  expect(judge({ any: -5, upTo: 4, between: 0, text: '', one: 1 })).toEqual([]);
  expect(judge({ between: 1, one: 'a' })).toEqual([]);
  expect(judge({ any: Number.POSITIVE_INFINITY, upTo: 5, between: 1.5, text: 1, one: 'b' })).toEqual([
    'distribution.parameters.any must be a number; use a number',
    'distribution.parameters.upTo must be a whole number of at most 4; use a whole number',
    'distribution.parameters.between must be a number of at least 0 and of at most 1; use a number from 0 on',
    'distribution.parameters.text must be text; write it in quotes',
    'distribution.parameters.one must be 1 or a; use one of them',
  ]);
});

test('each library is served under its launchers, and no other', () => {
  expect(LIBRARIES).toEqual(['ddp', 'deepspeed', 'fsdp', 'custom', 'megatron', 'smp-v1', 'smp-v2']);
  const served = (library: string, launcher: string, collectives: string, kind = 'environment') =>
    findStrategy(runOf({ ...BASE, image: { kind }, distribution: { library, launcher, collectives } }))?.name;
  const table = LIBRARIES.map((library) => [
    library,
    ...['torchrun', 'mpi', 'script', 'ray'].map((launcher) => served(library, launcher, 'nccl')),
    served(library, 'mpi', 'smddp'),
    served(library, 'torchrun', 'nccl', 'huggingface'),
  ]);
  expect(table).toEqual([
    ['ddp', 'ddp', 'mpi', 'script', 'ray', 'smddp', 'ddp'],
    ['deepspeed', 'deepspeed', 'mpi', 'script', 'ray', 'smddp', 'deepspeed'],
    ['fsdp', 'fsdp', 'mpi', 'script', 'ray', 'smddp', 'fsdp'],
    ['custom', 'torchrun', 'mpi', 'script', 'ray', 'smddp', 'torchrun'],
    ['megatron', 'megatron', 'mpi', 'script', 'ray', 'smddp', 'megatron'],
    ['smp-v1', 'smp-v1', 'smp-v1', 'smp-v1', 'smp-v1', 'smp-v1', 'smp-v1'],
    ['smp-v2', 'smp-v2', 'smp-v2', 'smp-v2', 'smp-v2', 'smp-v2', 'smp-v2'],
  ]);
});

test('a layout exists where the degrees of its rules fit, and its factors are the world size', () => {
  const power = fc.constantFrom(1, 2, 3, 4, 8, 16);
  const keys = {
    fsdp: ['tensor_parallel_degree', 'context_parallel_degree', 'shard_degree', 'replicate_degree'],
    'smp-v1': ['tensor_parallel_degree', 'pipeline_parallel_degree', 'sharded_data_parallel_degree'],
    megatron: ['tensor-model-parallel-size', 'pipeline-model-parallel-size', 'context-parallel-size'],
  } as const;
  const library = fc.constantFrom(...(Object.keys(keys) as (keyof typeof keys)[]));
  fc.assert(
    fc.property(library, fc.array(fc.option(power), { minLength: 4, maxLength: 4 }), (name, degrees) => {
      const given = keys[name].flatMap((key, i) => (degrees[i] ? [[key, degrees[i]]] : []));
      const run = runOf({
        ...BASE,
        distribution: { library: name, parameters: Object.fromEntries(given), processesPerHost: 8 },
      });
      const strategy = findStrategy(run);
      const isRefused = strategy?.rules.some(({ id, check }) => id === `${name}/degrees` && check(run, {}).length > 0);
      const layout = strategy?.layout(run);
      expect(layout === undefined).toBe(isRefused);
      if (layout) expect(layout.tensor * layout.pipeline * layout.context * layout.shard * layout.replicate).toBe(16);
    }),
    { numRuns: 300 },
  );
});
