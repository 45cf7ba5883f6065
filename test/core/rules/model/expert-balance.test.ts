import { expect, test } from 'vitest';
import { BASE, issuesOf } from '../../../support/runs';

const V3 = { preset: 'deepseek-v3' };
const file = (given: object, changes: object = {}) => ({
  ...BASE,
  model: { preset: 'mixtral-8x7b' },
  training: { sequenceLength: 4096, microBatchSize: 1, globalBatchSize: 16, steps: 10 },
  code: { source: 'builtin', arguments: given },
  distribution: { library: 'fsdp' },
  data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
  ...changes,
});
const found = (given: object, changes: object = {}) => [
  ...issuesOf(file(given, changes), 'training/expert-balance'),
  ...issuesOf(file(given, changes), 'training/balance-loss-over'),
];

test('losses go with every mixture of experts, the rate with one that has a bias', () => {
  expect(found({ 'balance-loss': 0.001, 'balance-loss-over': 'micro-batch', 'router-z-loss': 0.001 })).toEqual([]);
  expect(found({ 'routing-bias-rate': 0.001 }, { model: V3 })).toEqual([]);
  expect(found({ 'balance-loss': 0 }, { model: { preset: 'llama3-8b' } })).toEqual([]);
});

const fsdp = (parameters: object) => ({ distribution: { library: 'fsdp', parameters } });
test.each([
  ['balance-loss', 0.1, { model: { preset: 'llama3-8b' } }],
  ['router-z-loss', 0.1, { distribution: { library: 'deepspeed' } }],
  ['balance-loss', 0.1, fsdp({ compile: true })],
  ['balance-loss', 0.1, fsdp({ context_parallel_degree: 2 })],
  ['routing-bias-rate', 0.001, {}],
  ['routing-bias-rate', 0.001, { model: V3, training: { steps: 10, lora: { rank: 4 } } }],
])('%s %j is refused with %j', (name, value, changes) => {
  const issues = found({ [name]: value }, changes);
  expect(issues).toMatchObject([{ level: 'error', path: `code.arguments.${name}` }]);
});

test('loads are counted, and so the bias moves, under context parallelism', () => {
  expect(found({ 'routing-bias-rate': 0.001 }, { model: V3, ...fsdp({ context_parallel_degree: 2 }) })).toEqual([]);
});

test('what balance is over says nothing without a loss', () => {
  expect(found({ 'balance-loss-over': 'sequence' })).toMatchObject([{ level: 'warning' }]);
});
