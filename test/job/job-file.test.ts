import { expect, test } from 'vitest';
import { jobFile } from '../../lib/job/job-file';
import { BASE, planOf, runOf } from '../support/runs';

const argumentsOf = (file: Record<string, unknown>) => jobFile(planOf(runOf({ ...BASE, ...file }))).arguments;
const OBSERVED = {
  profiler: 'pytorch',
  tensorBoard: true,
  mlflow: { arn: 'arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/x', experiment: 'e' },
};

test('the built-in trainer is told what to observe; own code gets its own arguments alone', () => {
  const code = { source: 'builtin', arguments: { 'clip-norm': 2 } };
  const asked = ['--tensorboard', '--mlflow', '--profile'];
  expect(argumentsOf({ code, observability: OBSERVED })).toEqual(['--clip-norm', '2', ...asked]);
  expect(argumentsOf({ code, observability: { profiler: 'off' } })).toEqual(['--clip-norm', '2']);
  expect(argumentsOf({ observability: OBSERVED })).toEqual(argumentsOf({}));
});

test('heartbeats are asked of jobs whose role may write them', () => {
  const heartbeatOf = (file: Record<string, unknown>) => jobFile(planOf(runOf({ ...BASE, ...file }))).heartbeatUri;
  expect(heartbeatOf({})).toMatch(/^s3:\/\/.*\/heartbeat\.json$/);
  expect(heartbeatOf({ network: { isolation: true } })).toBeNull();
  expect(heartbeatOf({ kind: 'processing', code: { source: 'builtin-tokenize' } })).toBeNull();
});

test('the tokenise step is told what the section tokenizer says', () => {
  const code = { source: 'builtin-tokenize', arguments: { tokenizer: 'byte' } };
  const tokenizer = { chatTemplate: '{{ messages }}', trainOn: 'all' };
  const told = ['--tokenizer', 'byte', '--chat-template', '{{ messages }}', '--train-on', 'all'];
  expect(argumentsOf({ kind: 'processing', code, tokenizer })).toEqual(told);
  expect(argumentsOf({ kind: 'processing', code })).toEqual(told.slice(0, 2));
});
