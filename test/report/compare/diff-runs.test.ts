import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { differentOptions, diffRuns, lossAtEqualSteps } from '../../../lib/report/compare/diff-runs';
import type { ReportStep, RunReport } from '../../../lib/report/run/run-report';

const step = (n: number, loss?: number, attempt = 1): ReportStep => ({
  attempt,
  at: '2026-11-21T12:00:00Z',
  step: n,
  ...(loss !== undefined && { loss }),
  tokensPerSecondPerGpu: 100 * n,
});
const report = (runId: string, steps: ReportStep[]) =>
  ({
    runId,
    state: 'completed',
    step: 3,
    goodput: 0.9,
    spendUsd: 2,
    steps,
    attempts: [],
    missing: {},
  }) as unknown as RunReport;
const launched = (spec: Record<string, unknown>, code: string | null = 'c1') => ({
  spec,
  codeSha256: code,
  driverHash: 'd1',
  trainingImageUri: null,
});

test('what differs: options by their paths, code, losses at equal steps', () => {
  const diff = diffRuns(
    [report('a', [step(1, 5), step(2, 4)]), report('b', [step(2, 3.5), step(3, 3)])],
    [
      launched({ name: 'x', training: { seed: 1, steps: 3 }, data: [{ s3: 'u' }] }),
      launched({ name: 'x', training: { steps: 3 }, data: [{ s3: 'v' }, { s3: 'w' }] }, 'c2'),
    ],
  );
  expect(diff.options).toEqual([
    { path: 'training.seed', values: [1, null] },
    { path: 'data[0].s3', values: ['u', 'v'] },
    { path: 'data[1]', values: [null, { s3: 'w' }] },
  ]);
  expect(diff.code).toEqual({ isSame: false, values: ['c1', 'c2'] });
  expect(diff.driver.isSame).toBe(true);
  expect(diff.lossAtSteps).toEqual([{ step: 2, loss: [4, 3.5] }]);
  expect(diff.runs.map(({ runId, loss, tokensPerSecondPerGpu }) => [runId, loss, tokensPerSecondPerGpu])).toEqual([
    ['a', 4, 150],
    ['b', 3, 250],
  ]);
});

describe('losses at equal steps', () => {
  test('of a step that was made again after a restart the last one counts, and one without a loss is none', () => {
    const again = [step(1, 5), step(2, 4), step(2, 4.5, 2), step(3)];
    expect(lossAtEqualSteps(again, [step(2, 4), step(3, 3)])).toEqual([{ step: 2, loss: [4.5, 4] }]);
  });

  test('of many steps ten are taken, with the first and the last', () => {
    const many = Array.from({ length: 1000 }, (_, i) => step(i + 1, i));
    const found = lossAtEqualSteps(many, many);
    expect(found).toHaveLength(10);
    expect([found[0]?.step, found[9]?.step]).toEqual([1, 1000]);
  });
});

test('equal options have no differences, and the order of the runs only turns the values round', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      expect(differentOptions(a, structuredClone(a))).toEqual([]);
      const turned = differentOptions(b, a).map(({ path, values: [x, y] }) => ({ path, values: [y, x] }));
      const byPath = (all: { path: string }[]) => [...all].sort((x, y) => (x.path < y.path ? -1 : 1));
      expect(byPath(turned)).toEqual(byPath(differentOptions(a, b)));
    }),
  );
});
