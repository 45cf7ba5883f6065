import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { builtinArguments, trainerConstants } from '../../../../scripts/trainer-arguments/text';
import { BASE, issuesOf } from '../../../support/runs';

const BUILTIN = {
  ...BASE,
  model: { preset: 'llama3-8b' },
  training: { sequenceLength: 4096, globalBatchSize: 16, steps: 10 },
  code: { source: 'builtin' },
};
const tokens = (channel: string) => [{ channel, s3: 's3://{dataBucket}/tokens/' }];

test('the arguments are those of the trainer: run `npm run trainer:arguments`', () => {
  expect(readFileSync(path.join(__dirname, '../../../../lib/core/catalog/builtin-arguments.json'), 'utf8')).toBe(
    builtinArguments(),
  );
});

test('the constants are those of the trainer: run `npm run trainer:arguments`', () => {
  const file = path.join(__dirname, '../../../../lib/core/catalog/trainer-constants.json');
  expect(readFileSync(file, 'utf8')).toBe(trainerConstants());
});

test('an argument that the trainer does not know is refused, with the nearest ones', () => {
  const file = { ...BUILTIN, data: tokens('train'), code: { source: 'builtin', arguments: { 'warm-up-steps': 5 } } };
  expect(issuesOf(file, 'code/builtin-arguments')).toMatchObject([
    { level: 'error', message: expect.stringMatching(/use warmup-steps, /) },
  ]);
});

test('an adapter is exported where one trains', () => {
  const code = { source: 'builtin', arguments: { 'export-adapter': true } };
  const file = { ...BUILTIN, data: tokens('train'), code };
  expect(issuesOf(file, 'training/lora')).toMatchObject([{ level: 'error', path: 'code.arguments.export-adapter' }]);
  const model = { preset: 'llama3-8b', weights: 's3://{dataBucket}/weights/' };
  const training = { ...BUILTIN.training, lora: { rank: 8 } };
  expect(issuesOf({ ...file, model, training }, 'training/lora')).toEqual([]);
});

test('an adapter of experts or of their router is not exported', () => {
  const file = (preset: string, targets = ['q_proj', 'down_proj']) => ({
    ...BUILTIN,
    data: tokens('train'),
    model: { preset, weights: 's3://{dataBucket}/weights/' },
    training: { ...BUILTIN.training, lora: { rank: 8, targets } },
    code: { source: 'builtin', arguments: { 'export-adapter': true } },
  });
  expect(issuesOf(file('gpt-oss-20b'), 'training/lora')).toMatchObject([
    { level: 'error', path: 'code.arguments.export-adapter', message: expect.stringMatching(/got q_proj, down_proj;/) },
  ]);
  for (const preset of ['mixtral-8x7b', 'qwen3-30b-a3b'])
    expect(issuesOf(file(preset), 'training/lora'), preset).toHaveLength(1);
  expect(issuesOf(file('deepseek-v3', ['router']), 'training/lora')).toHaveLength(1);
  expect(issuesOf(file('deepseek-v3', ['q_a_proj', 'o_proj']), 'training/lora')).toEqual([]);
  expect(issuesOf(file('llama3-8b'), 'training/lora')).toEqual([]);
});

test('the channel with the tokens is train, or what data-channel says', () => {
  expect(issuesOf({ ...BUILTIN, data: tokens('books') }, 'training/builtin-data')).toHaveLength(1);
  const code = { source: 'builtin', arguments: { 'data-channel': 'books' } };
  expect(issuesOf({ ...BUILTIN, data: tokens('books'), code }, 'training/builtin-data')).toEqual([]);
});

test("the PyTorch profiler runs in the built-in trainer, and a script of one's own is told to start it itself", () => {
  const observability = { profiler: 'pytorch' };
  const rule = 'observability/pytorch-profiler';
  expect(issuesOf({ ...BASE, observability }, rule)).toMatchObject([
    { level: 'warning', path: 'observability.profiler' },
  ]);
  expect(issuesOf({ ...BUILTIN, data: tokens('train'), observability }, rule)).toEqual([]);
});

test('the built-in trainer asks for the channel that it reads, and own code for none', () => {
  const found = (changes: object) => issuesOf({ ...BUILTIN, ...changes }, 'training/builtin-data');
  const reads = { source: 'builtin', arguments: { 'data-channel': 'tokens' } };
  expect(
    [{ data: tokens('train') }, { data: tokens('tokens'), code: reads }, { code: { source: './src' } }].flatMap(found),
  ).toEqual([]);
  const missing = (channel: string) => ({
    level: 'error',
    path: 'data',
    message: expect.stringContaining(`must have a channel ${channel} for the built-in trainer, got`),
  });
  expect(found({ data: tokens('eval') })).toMatchObject([missing('train')]);
  expect(found({ data: tokens('train'), code: reads })).toMatchObject([missing('tokens')]);
});
