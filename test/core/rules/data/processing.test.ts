import { expect, test } from 'vitest';
import { issuesOf } from '../../../support/runs';

const PROCESSING = {
  name: 'prepare',
  kind: 'processing',
  code: { source: 'builtin-tokenize' },
  compute: { instanceType: 'ml.m5.4xlarge', instanceCount: 2 },
  data: [{ channel: 'raw', s3: 's3://{dataBucket}/raw/' }],
  output: { s3: 's3://{dataBucket}/tokens/' },
};
const inputs = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ channel: `c${i}`, s3: 's3://{dataBucket}/raw/' }));

test('the example says nothing', () => {
  expect(issuesOf(PROCESSING, 'processing/')).toEqual([]);
});

test.each([
  [{ hyperparameters: { a: 1 } }, 'hyperparameters'],
  [{ observability: { tensorBoard: true } }, 'observability.tensorBoard'],
  [{ observability: { metrics: [{ name: 'a', regex: '(a)' }] } }, 'observability.metrics'],
  [{ limits: { retryInternalErrors: 3 } }, 'limits.retryInternalErrors'],
  [{ network: { efa: 'preferred' } }, 'network.efa'],
  [{ data: [{ ...PROCESSING.data[0], inputMode: 'Pipe', shuffleSeed: 7 }] }, 'data[0].shuffleSeed'],
])('what CreateProcessingJob has no field for is warned of: %j', (rest, path) => {
  expect(issuesOf({ ...PROCESSING, ...rest }, 'processing/')).toMatchObject([
    { rule: 'processing/without-effect', level: 'warning', path },
  ]);
});

test('an option at its default says nothing', () => {
  const observability = { tensorBoard: false, remoteDebug: false, profiler: 'off', metrics: [] };
  expect(issuesOf({ ...PROCESSING, observability }, 'processing/')).toEqual([]);
});

test.each([
  [{ compute: { instanceType: 'ml.p4d.24xlarge' } }, 'compute.instanceType'],
  [{ compute: { instanceType: 'ml.p5.48xlarge' } }, 'compute.instanceType'],
  [{ environmentVariables: { A: 'x'.repeat(257) } }, 'environmentVariables.A'],
  [{ data: inputs(9) }, 'data'],
])('fails: %j', (rest, path) => {
  expect(issuesOf({ ...PROCESSING, ...rest }, 'processing/')).toMatchObject([{ level: 'error', path }]);
});

test.each([
  [{ compute: { instanceType: 'ml.p5.4xlarge' } }],
  [{ compute: { instanceType: 'ml.g5.48xlarge' } }],
  [{ environmentVariables: { A: 'x'.repeat(256) } }],
  [{ data: inputs(8) }],
])('%j is within the limits', (rest) => {
  expect(issuesOf({ ...PROCESSING, ...rest }, 'processing/')).toEqual([]);
});
