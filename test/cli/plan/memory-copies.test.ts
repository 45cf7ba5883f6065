import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { planText } from '../../../lib/cli/plan/text/plan-text';
import { planRun } from '../../../lib/core/planner/run/plan-run';
import { runOf } from '../../support/runs';

function lineOf(given: {
  preset?: string;
  compute?: object;
  checkpoints?: object;
  parameters?: object;
}): string | undefined {
  const run = runOf({
    name: 'copies',
    model: { preset: given.preset ?? 'llama3-8b' },
    training: {
      sequenceLength: 8192,
      microBatchSize: 1,
      globalBatchSize: 128,
      steps: 1000,
      activationCheckpointing: 'full',
    },
    code: { source: 'builtin' },
    data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4, ...given.compute },
    distribution: { library: 'fsdp', parameters: given.parameters ?? {} },
    checkpoints: given.checkpoints ?? {},
  });
  const plan = planRun(run, { region: 'us-west-2' });
  if (Array.isArray(plan)) throw new Error('no plan');
  const found = stripVTControlCharacters(planText(run, plan)).split('\n');
  return found.find((line) => line.includes('in memory'))?.trim();
}

test('shows the memory of each host, the overhead and the expected loss', () => {
  expect(lineOf({})).toMatch(
    /^copies in memory every step: 89\.7 of 1,638 GiB per host, 0.0 % overhead, [\d.]+ s repeated after a restart in place$/,
  );
  expect(lineOf({ checkpoints: { memory: { everySteps: 10, copies: 1 } } })).toMatch(
    /^copies in memory every 10 steps: 44\.9 of/,
  );
});

test('counts a replica on another host as the copy, for which nothing is sent', () => {
  // Twice the state on each host, and half the copies of it.
  expect(lineOf({ parameters: { replicate_degree: 2 } })).toMatch(/: 89\.7 of 1,638 GiB per host/);
});

test('says what is missing when copies do not fit', () => {
  const compute = { instanceType: 'ml.p4d.24xlarge', instanceCount: 2 };
  expect(lineOf({ preset: 'llama3-70b', compute, checkpoints: { memory: 'auto' } })).toMatch(
    /^no copies in memory: they need 1,577\.\d GiB per host, and may use 922 GiB; use more instances$/,
  );
});

test.each([{ checkpoints: { memory: 'off' } }, { checkpoints: { mode: 'none' } }, { compute: { instanceCount: 1 } }])(
  'shows nothing for %j',
  (given) => {
    expect(lineOf(given)).toBeUndefined();
  },
);
