import { expect, test } from 'vitest';
import { pausesOf, trainedMs } from '../../../../lib/core/lifecycle/accounting/pauses';
import type { Attempt } from '../../../../lib/core/lifecycle/record';

const transitions = (...statuses: [string, number][]) => statuses.map(([status, at]) => ({ status, at }));
const attempt = (more: Partial<Attempt>) => ({ trainingStartedAt: 100, ...more }) as Attempt;

test.each([
  [
    'no interruption',
    [
      ['Starting', 0],
      ['Pending', 5],
      ['Downloading', 100],
      ['Training', 110],
      ['Uploading', 900],
    ],
    { ms: 0 },
  ],
  [
    'an interruption lasts until the instances download again',
    [
      ['Starting', 0],
      ['Downloading', 100],
      ['Training', 110],
      ['Interrupted', 200],
      ['Starting', 230],
      ['Downloading', 300],
      ['Training', 320],
    ],
    { ms: 100, times: 1 },
  ],
  [
    'two interruptions, the second without a download',
    [
      ['Downloading', 100],
      ['Training', 110],
      ['Interrupted', 200],
      ['Training', 250],
      ['Interrupted', 400],
      ['Training', 430],
    ],
    { ms: 80, times: 2 },
  ],
  [
    'one that is not over',
    [
      ['Downloading', 100],
      ['Training', 110],
      ['Interrupted', 200],
      ['Pending', 230],
    ],
    { ms: 0, since: 200, times: 1 },
  ],
  [
    'one that a stop ends gets no instances again',
    [
      ['Downloading', 100],
      ['Training', 110],
      ['Interrupted', 200],
      ['Stopping', 230],
      ['Stopped', 260],
    ],
    { ms: 0, since: 200, times: 1 },
  ],
] as [string, [string, number][], object][])('pauses: %s', (_, statuses, expected) => {
  expect(pausesOf(transitions(...statuses))).toEqual(expected);
});

test('time with instances leaves out pauses that are over and the one that is not', () => {
  expect(trainedMs(attempt({}), 500)).toBe(400);
  expect(trainedMs(attempt({ pauses: { ms: 50 } }), 500)).toBe(350);
  expect(trainedMs(attempt({ pauses: { ms: 50, since: 300 } }), 500)).toBe(150);
  expect(trainedMs(attempt({ trainingStartedAt: undefined }), 500)).toBe(0);
});
