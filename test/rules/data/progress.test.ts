import { expect, test } from 'vitest';
import { BASE, issuesOf } from '../../support/runs';

const messages = (progress: object) => issuesOf({ ...BASE, progress }, 'progress/').map(({ message }) => message);

test('an expression with one group for step and loss is right, and further groups of the step are left alone', () => {
  expect(messages({ stepRegex: 'step=(\\d+)', lossRegex: 'loss[=:] ?([-+.0-9e]+)' })).toEqual([]);
  expect(messages({ stepRegex: 'step=(\\d+)/(\\d+)' })).toEqual([]);
});

test.each([
  [
    { lossRegex: 'loss=[0-9.]+' },
    'progress.lossRegex: must hold exactly one group, which matches the loss, got loss=[0-9.]+; use for example loss=([-+.0-9e]+)',
  ],
  [
    { lossRegex: '(loss)=([0-9.]+)' },
    'progress.lossRegex: must hold exactly one group, which matches the loss, got (loss)=([0-9.]+); use for example loss=([-+.0-9e]+)',
  ],
  [
    { stepRegex: 'step' },
    'progress.stepRegex: must hold a group that matches the step, got step; use for example step=(\\d+)',
  ],
])('fails: %o', (progress, message) => {
  expect(messages(progress)).toEqual([message]);
});

test('fails: an expression that one of both languages does not read', () => {
  const [found = ''] = messages({ lossRegex: 'loss=(' });
  expect(found).toMatch(
    /^progress\.lossRegex: must be a regular expression in JavaScript and in Python, got loss=\(; /,
  );
});
