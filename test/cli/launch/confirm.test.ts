import { expect, test } from 'vitest';
import { confirmCost } from '../../../lib/cli/launch/submit';
import type { Terminal } from '../../../lib/cli/terminal';
import { BASE, DESCRIPTOR, runOf } from '../../support/runs';

const linesFor = async (instanceType: string, limits: object, environment = DESCRIPTOR): Promise<string[]> => {
  const lines: string[] = [];
  const run = runOf({ ...BASE, compute: { instanceType, instanceCount: 2 }, limits });
  await confirmCost(run, environment, true, { err: (text: string) => lines.push(text) } as unknown as Terminal);
  return lines;
};

test('a run of cents is told in cents, and its cap as written', async () => {
  const [cost] = await linesFor('ml.m5.xlarge', { maxRuntimeSeconds: 3600, maxCostUsd: 5 });
  expect(cost).toBe(
    'cost: $0.4600 per hour, $0.4600 for an attempt of maxRuntimeSeconds (1.0 h); the run stops at $5.00',
  );
});

test('without a cap nothing is said of one', async () => {
  const [cost] = await linesFor('ml.p5.48xlarge', { maxRuntimeSeconds: 36000 });
  expect(cost).toMatch(
    /^cost: \$[\d,]+\.\d\d per hour, \$[\d,]+\.\d\d for an attempt of maxRuntimeSeconds \(10\.0 h\)$/,
  );
});

test('fails: --yes for a price that nobody knows, without a cap', async () => {
  await expect(linesFor('ml.c5.4xlarge', { maxRuntimeSeconds: 3600 })).rejects.toMatchObject({
    issues: [{ rule: 'limits/unknown-price', path: 'limits.maxCostUsd' }],
  });
});

test('fails: a price that nobody knows where the environment limits what runs cost, before anything is asked or sent', async () => {
  const limited = { ...DESCRIPTOR, guardrails: { ...DESCRIPTOR.guardrails, maxCostPerRunUsd: 100 } };
  const limits = { maxRuntimeSeconds: 3600, maxCostUsd: 5 };
  await expect(linesFor('ml.c5.4xlarge', limits, limited)).rejects.toMatchObject({
    issues: [{ rule: 'price/unknown', path: 'compute.instanceType' }],
  });
});
