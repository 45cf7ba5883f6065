import { expect, test } from 'vitest';
import { BASE, issuesOf } from '../../support/runs';

const found = (given: object, changes: object = {}) => {
  const run = {
    ...BASE,
    model: { preset: 'llama3-8b' },
    training: { sequenceLength: 1024, microBatchSize: 1, globalBatchSize: 16, steps: 10 },
    code: { source: 'builtin', arguments: given },
    distribution: { library: 'fsdp' },
    data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
    ...changes,
  };
  // And training/samples-unused.
  return issuesOf(run, 'training/samples');
};

test('samples go with prompts and continuations that fit', () => {
  expect(found({ samples: 2, 'sample-tokens': 992, 'sample-tokenizer': 'byte' })).toEqual([]);
  expect(found({ samples: 0 })).toEqual([]);
  const training = { objective: 'sft', sequenceLength: 1024, globalBatchSize: 16, steps: 10 };
  expect(found({ samples: 2, 'sample-tokens': 1023 }, { training })).toEqual([]);
});

test.each([
  ['samples', -1, {}, 'must be a whole number of at least 0'],
  ['samples', 1.5, {}, 'must be a whole number of at least 0'],
  ['samples', 1, { distribution: { library: 'smp-v2' } }, 'must be 0 with smp-v2'],
  ['sample-tokens', 993, {}, 'must be 1 to 992, what sequenceLength 1024 leaves'],
  ['sample-tokens', 0, {}, 'must be 1 to 992, what sequenceLength 1024 leaves'],
  ['sample-prompt-tokens', 0, {}, 'must be a whole number of at least 1'],
  ['sample-prompt-tokens', 1024, {}, 'must be less than sequenceLength 1024, got 1024; choose a smaller number'],
])('%s %j is refused with %j: %s', (name, value, changes, must) => {
  const [issue, ...others] = found({ samples: 1, [name]: value }, changes);
  expect(others).toEqual([]);
  expect(issue).toMatchObject({ level: 'error', path: `code.arguments.${name}` });
  expect(issue?.message).toContain(must);
});

test('how samples are made says nothing without a number of them', () => {
  expect(found({ 'sample-tokens': 8, 'sample-tokenizer': 'byte' })).toMatchObject([
    { level: 'warning', path: 'code.arguments.sample-tokens' },
    { level: 'warning', path: 'code.arguments.sample-tokenizer' },
  ]);
});

test('samples belong to the built-in trainer', () => {
  expect(found({}, { code: { source: './src', arguments: { samples: -1, 'sample-tokens': 0 } } })).toEqual([]);
});
