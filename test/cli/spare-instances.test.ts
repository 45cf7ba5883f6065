import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { planText } from '../../lib/cli/plan/text/plan-text';
import { statusText } from '../../lib/cli/runs/status';
import type { StatusAnswer } from '../../lib/core/contracts/control';
import { planRun } from '../../lib/core/planner/run/plan-run';
import { DESCRIPTOR, runOf } from '../support/runs';

const file = (compute: object = {}, rest: object = {}) => ({
  name: 'big',
  model: { preset: 'llama3-70b' },
  training: {
    sequenceLength: 8192,
    microBatchSize: 1,
    globalBatchSize: 4096,
    totalTokens: 1e12,
    activationCheckpointing: 'full',
  },
  code: { source: 'builtin' },
  data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
  compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 512, ...compute },
  distribution: { library: 'fsdp', parameters: { shard_degree: 64 } },
  ...rest,
});

function planned(run: ReturnType<typeof runOf>) {
  const plan = planRun(run, { region: 'us-west-2' });
  if (Array.isArray(plan)) throw new Error('no plan');
  return plan;
}

function linesOf(given: object): string[] {
  const run = runOf(given);
  const plan = planned(run);
  // In CI the words are coloured.
  return stripVTControlCharacters(planText(run, plan))
    .split('\n')
    .filter((line) => /spare/i.test(line));
}

describe('slipway plan', () => {
  test('suggests as many spare hosts as pay, in one line with numbers', () => {
    expect(linesOf(file())).toEqual([
      expect.stringMatching(
        /try compute\.spareInstances: 3: 70 % of the hardware failures cost 1\.4 minutes instead of 16\.8, goodput 97\.\d % instead of 9[45]\.\d %; saves 9,\d{3} node-hours per month for 2,160$/,
      ),
    ]);
  });

  test('suggests none where they do not pay', () => {
    expect(linesOf(file({ instanceCount: 64 }))).toEqual([]);
  });

  test.each([
    ['they may not be had', { checkpoints: { mode: 'none' } }],
    [
      'the data is in parts',
      { data: [{ channel: 'train', s3: 's3://{dataBucket}/t/', s3DataDistribution: 'ShardedByS3Key' }] },
    ],
  ])('suggests none where %s', (_why, rest) => {
    expect(linesOf(file({}, rest))).toEqual([]);
  });

  test('says what those of the run are worth', () => {
    expect(linesOf(file({ spareInstances: 4 }))).toEqual([
      expect.stringMatching(/^spare hosts +4: 7\d % of the hardware failures cost 1\.4 minutes .* for 2,880 *$/),
    ]);
  });

  test('expects the same run to be over sooner with them', () => {
    const [without, spares] = [0, 2].map((spareInstances) => planned(runOf(file({ spareInstances }))));
    expect(spares?.wallHours).toBeLessThan(without?.wallHours ?? 0);
    expect(spares?.stepSeconds).toBe(without?.stepSeconds);
    expect(spares?.memoryGiB).toEqual(without?.memoryGiB);
    expect(spares?.usd.perHour).toBeCloseTo(((without?.usd.perHour ?? 0) * 514) / 512, 6);
  });
});

describe('slipway status', () => {
  const answer: StatusAnswer = {
    runId: 'big-261121120000',
    name: 'big',
    team: 'nlp',
    state: 'running',
    desiredState: 'run',
    reason: '',
    attempts: [],
    committedStep: 100,
    step: 120,
    loss: 2.5,
    goodput: 0.97,
    spendUsd: 10,
    queuePosition: null,
  };

  test.each<[StatusAnswer['spareInstances'], string]>([
    [{ left: 1, of: 2 }, 'spare hosts 1 of 2'],
    [{ left: 0, of: 2 }, 'spare hosts 0 of 2'],
    [{ left: null, of: 2 }, 'spare hosts - of 2'],
  ])('shows the spare hosts that are left: %j', (spareInstances, text) => {
    expect(statusText({ ...answer, spareInstances }, DESCRIPTOR)).toContain(text);
  });

  test('says nothing of them where the run has none', () => {
    expect(statusText(answer, DESCRIPTOR)).not.toContain('spare');
  });
});
