import { expect, test } from 'vitest';
import { publishedBeside } from '../../../lib/cli/plan/text/plan-text';
import { planRun } from '../../../lib/core/planner/run/plan-run';
import { runOf } from '../../support/runs';

const FACTS = { region: 'us-west-2' };

function shownFor(changes: object) {
  const run = runOf({
    name: 'mine',
    model: { preset: 'llama3-8b' },
    training: { sequenceLength: 8192, microBatchSize: 1, activationCheckpointing: 'selective' },
    code: { source: 'builtin' },
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 8 },
    distribution: { library: 'fsdp', parameters: { compile: true } },
    ...changes,
  });
  const plan = planRun(run, FACTS);
  if (Array.isArray(plan)) throw new Error(plan.map((i) => i.message).join('\n'));
  return publishedBeside(run, plan, FACTS);
}

test('published runs of the same model on the same instance type stand beside a plan, whatever the size of its cluster', () => {
  const [eager, compiled] = shownFor({});
  expect([eager?.measuredTokensPerSecondPerGpu, eager?.isSameSetup]).toEqual([6475, false]);
  expect([compiled?.measuredTokensPerSecondPerGpu, compiled?.isSameSetup]).toEqual([7166, true]);
  for (const run of [eager, compiled]) {
    const off = (run?.predictedTokensPerSecondPerGpu ?? 0) / (run?.measuredTokensPerSecondPerGpu ?? 1);
    expect(off).toBeGreaterThan(0.85);
    expect(off).toBeLessThan(1.15);
  }
});

test.each([
  ['another model', { model: { preset: 'llama3-70b' } }],
  ['another instance type', { compute: { instanceType: 'ml.p4d.24xlarge', instanceCount: 8 } }],
])('nothing published stands beside %s', (_what, changes) => {
  expect(shownFor(changes)).toEqual([]);
});
