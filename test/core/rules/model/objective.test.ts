import { expect, test } from 'vitest';
import { totalSteps } from '../../../../lib/core/config/resolve-run';
import { layoutOfRun } from '../../../../lib/core/planner/run/layout-of-run';
import { BASE, issuesOf, runOf } from '../../../support/runs';

const WEIGHTS = { preset: 'llama3-8b', weights: 's3://{dataBucket}/weights/' };
const TRAINING = { sequenceLength: 4096, microBatchSize: 1, globalBatchSize: 16, steps: 10 };
const DATA = [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }];
const file = (objective: string, changes: object = {}) => ({
  ...BASE,
  model: WEIGHTS,
  training: { ...TRAINING, objective },
  code: { source: 'builtin' },
  distribution: { library: 'fsdp' },
  data: DATA,
  ...changes,
});
const code = (given: object) => ({ code: { source: 'builtin', arguments: given } });

test.each(['pretrain', 'sft', 'dpo'])('objective %s is taken as it stands', (objective) => {
  expect(issuesOf(file(objective), 'training/objective')).toEqual([]);
  expect(issuesOf(file(objective), 'training/preferences')).toEqual([]);
});

test.each([
  ['sft', { distribution: { library: 'deepspeed' } }, 'distribution.library'],
  ['dpo', { distribution: { library: 'fsdp', parameters: { context_parallel_degree: 2 } } }, /context_parallel_degree/],
  ['dpo', { distribution: { library: 'fsdp', parameters: { tensor_parallel_degree: 2 } } }, /tensor_parallel_degree/],
  ['dpo', { training: { ...TRAINING, objective: 'dpo', precision: 'fp8' } }, 'training.precision'],
  ['dpo', code({ backend: 'fsdp1' }), 'code.arguments.backend'],
  ['dpo', { distribution: { library: 'fsdp', collectives: 'smddp' } }, 'distribution.collectives'],
])('objective %s is refused with %j', (objective, changes, path) => {
  const found = issuesOf(file(objective, changes), 'training/objective');
  expect(found).toMatchObject([{ level: 'error', path: expect.stringMatching(path) }]);
});

test.each(['tensor', 'context'])('%s parallelism goes with sft', (name) => {
  const distribution = { library: 'fsdp', parameters: { [`${name}_parallel_degree`]: 2 } };
  expect(issuesOf(file('sft', { distribution }), 'training/objective')).toEqual([]);
});

test('an objective for own code is warned of', () => {
  const found = issuesOf(file('sft', { code: { source: './train' } }), 'training/objective');
  expect(found).toMatchObject([{ level: 'warning', path: 'training.objective' }]);
});

test.each([
  ['dpo', { checkpoints: { startFrom: 'other' } }, 'checkpoints.startFrom'],
  ['dpo', code({ 'z-loss': 0.001 }), 'code.arguments.z-loss'],
  ['sft', code({ beta: 0.1 }), 'code.arguments.beta'],
])('preferences: objective %s with %j names %s', (objective, changes, path) => {
  expect(issuesOf(file(objective, changes), 'training/preferences')).toMatchObject([{ level: 'error', path }]);
});

test('preferences of random weights are warned of', () => {
  const found = issuesOf(file('dpo', { model: { preset: 'llama3-8b' } }), 'training/preferences');
  expect(found).toMatchObject([{ level: 'warning', path: 'model.weights' }]);
});

test('beta is an argument of dpo', () => {
  expect(issuesOf(file('dpo', code({ beta: 0.3 })), 'training/preferences')).toEqual([]);
});

test('a preference counts as two sequences', () => {
  const training = { sequenceLength: 1000, globalBatchSize: 10, totalTokens: 1_000_000 };
  expect(totalSteps(runOf(file('sft', { training: { ...training, objective: 'sft' } })).training)).toBe(100);
  expect(totalSteps(runOf(file('dpo', { training: { ...training, objective: 'dpo' } })).training)).toBe(50);
});

test('a plan says what it leaves out of fine-tuning, and what a reference adds', () => {
  const compute = { instanceType: 'ml.p5.48xlarge', instanceCount: 1 };
  expect(layoutOfRun(runOf(file('sft', { compute })))).toMatchObject({
    assumptions: expect.arrayContaining([expect.stringMatching(/full of documents/)]),
  });
  expect(layoutOfRun(runOf(file('dpo', { compute })))).toMatchObject({
    assumptions: expect.arrayContaining([expect.stringMatching(/reference is a frozen copy/)]),
  });
});

const tokenise = (changes: object) => ({
  ...BASE,
  kind: 'processing',
  code: { source: 'builtin-tokenize' },
  distribution: undefined,
  data: [{ channel: 'raw', s3: 's3://{dataBucket}/raw/' }],
  output: { s3: 's3://{dataBucket}/tokens/' },
  ...changes,
});

test.each([
  [tokenise({ tokenizer: { chatTemplate: './chat.jinja' } }), 'tokenizer.chatTemplate'],
  [tokenise({ code: { source: 'builtin-tokenize', arguments: { 'train-on': 'all' } } }), 'code.arguments.train-on'],
  [file('sft', { tokenizer: { trainOn: 'all' } }), 'tokenizer'],
])('the section tokenizer is refused where nothing could read it', (given, path) => {
  expect(issuesOf(given, 'processing/tokenizer')).toMatchObject([{ level: 'error', path }]);
});

test.each([
  '/opt/ml/processing/input/tokenizer/chat_template.jinja',
  '{% for m in messages %}{{ m.content }}{% endfor %}',
])('the section tokenizer takes %s as a template', (chatTemplate) => {
  expect(issuesOf(tokenise({ tokenizer: { chatTemplate, trainOn: 'all' } }), 'processing/tokenizer')).toEqual([]);
});
