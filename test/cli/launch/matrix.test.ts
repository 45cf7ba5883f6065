import fc from 'fast-check';
import { expect, test } from 'vitest';
import { matrixCells } from '../../../lib/cli/launch/matrix/matrix';
import { comparisonText } from '../../../lib/cli/runs/reports/report';
import { measured } from '../../../lib/report/compare/diff-runs';
import { draws } from '../../support/draws';

test('one run per value; several options give every combination', () => {
  expect(matrixCells(['training.microBatchSize=1,2', 'compute.instanceCount=4, 8']).map(({ label }) => label)).toEqual([
    'training.microBatchSize=1 compute.instanceCount=4',
    'training.microBatchSize=1 compute.instanceCount=8',
    'training.microBatchSize=2 compute.instanceCount=4',
    'training.microBatchSize=2 compute.instanceCount=8',
  ]);
  expect(matrixCells(['a.b=1,2'])[1]).toEqual({ label: 'a.b=2', set: ['a.b=2'] });
});

test('a comma inside brackets, braces or quotes belongs to its value', () => {
  expect(matrixCells(['after=[a, b],[c]']).map(({ set }) => set)).toEqual([['after=[a, b]'], ['after=[c]']]);
  expect(matrixCells(['x="a,b",{c: 1, d: 2}']).map(({ set }) => set)).toEqual([['x="a,b"'], ['x={c: 1, d: 2}']]);
});

test('values of any depth stay whole, with whatever their texts contain', () => {
  const quoted = fc.string({ unit: fc.constantFrom(...`a,[]{}"'\\: `) });
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }).map((item) => JSON.stringify(item)),
    fc.array(fc.array(fc.nat(9))).map((item) => JSON.stringify(item)),
    quoted.map((text) => JSON.stringify(text)),
    quoted.map((text) => `'${text.replaceAll("'", "''")}'`),
    quoted.map((text) => `{x: { y: '${text.replaceAll("'", "''")}', z: [1, 2] }, w: 3}`),
    fc.constantFrom("don't", "it's", 's3://{dataBucket}/a/', '2.10', 'a"b', 'x]'),
  );
  fc.assert(
    fc.property(fc.uniqueArray(value, { minLength: 2, maxLength: 5 }), (values) => {
      for (const text of [values.join(','), values.join(' , ')])
        expect(matrixCells([`a.b=${text}`]).map(({ set }) => set)).toEqual(values.map((each) => [`a.b=${each}`]));
    }),
    { numRuns: draws(300) },
  );
});

test.each([
  ['training.steps', /must be a path and two or more values, got training.steps; write/],
  ['training.steps=1', /must be a path and two or more values/],
  ['training.steps=1,,2', /must be a path and two or more values/],
  ['training.steps=1,2,', /must be a path and two or more values/],
  ['=1,2', /must be a path and two or more values/],
  ['a b=1,2', /must be a path and two or more values/],
  ['training.steps=1,1', /must contain each value once/],
  [`training.seed=${[...Array(33).keys()].join()}`, /must give at most 32 runs, got 33 runs/],
])('fails: --matrix %s', (option, message) => {
  expect(() => matrixCells([option])).toThrow(message);
});

test('fails: the same path twice', () => {
  expect(() => matrixCells(['a=1,2', 'a=3,4'])).toThrow('--matrix: must contain each path once, got a;');
});

test('a comparison takes the last loss and the median throughput, and says where there is none', () => {
  const step = (n: number, loss: number, tokensPerSecondPerGpu: number) => ({
    attempt: 1,
    at: '2026-11-21T00:00:00Z',
    step: n,
    loss,
    tokensPerSecondPerGpu,
  });
  expect(measured([step(1, 5, 10), step(2, 4, 300), step(3, 3, 200)])).toEqual({ loss: 3, tokensPerSecondPerGpu: 200 });
  expect(measured([step(1, 5, 100), step(2, 4, 300)])).toMatchObject({ tokensPerSecondPerGpu: 200 });
  expect(measured([])).toEqual({ loss: null, tokensPerSecondPerGpu: null });
  const row = { runId: 'r-1', state: 'completed', step: 3, goodput: 0.5, spendUsd: 1, label: 'a=1', ...measured([]) };
  expect(comparisonText([row]).split('\n')[1]).toBe('r-1  completed  3     -     -             50.0 %   1.00  a=1');
});
