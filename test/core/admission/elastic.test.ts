import { expect, test } from 'vitest';
import { limitIssues, withinLimits } from '../../../lib/core/admission';
import { judgeForDeploy, type Limits, runQuotaNeeds } from '../../../lib/core/quota';
import { PLANNABLE, runOf } from '../../support/runs';

const NAME = 'ml.p5.48xlarge for training job usage';
const run = (instanceCount: unknown) =>
  runOf({
    ...PLANNABLE,
    data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount },
  });
const limits = (value: number): Limits => new Map([[NAME, { value }]]);
const said = (count: unknown, limit: number) => {
  const elastic = run(count);
  const rows = judgeForDeploy(runQuotaNeeds(elastic), limits(limit));
  return limitIssues(elastic, rows, limits(limit)).map(({ level, message }) => `${level}: ${message}`);
};

test.each([
  [8, 8],
  [7, 4],
  [1, 1],
  [0, 1],
])('with a limit of %i the most that may start is %i', (limit, count) => {
  expect(withinLimits(run({ min: 1, max: 8 }), limits(limit)).compute.instanceCount).toBe(count);
});

test('a limit between its sizes is a warning, one below them an error', () => {
  expect(said({ min: 2, max: 8 }, 8)).toEqual([]);
  expect(said({ min: 2, max: 8 }, 5)).toEqual([expect.stringMatching(/^warning: .*it starts with at most 4/)]);
  expect(said({ min: 2, max: 8 }, 1)).toEqual([expect.stringMatching(/^error: .*must be at most 1/)]);
});

test('a run of one size is refused above its limit, as before', () => {
  expect(said(8, 5)).toEqual([expect.stringMatching(/^error: .*must be at most 5/)]);
});
