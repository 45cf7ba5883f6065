import { describe, expect, test } from 'vitest';
import { fitsMemory, memoryIssues, withFittingAlternatives } from '../../../lib/core/admission/index';
import { loadRun } from '../../../lib/core/config/load';
import type { RunSpec } from '../../../lib/core/config/run-spec';
import { runOf } from '../../support/runs';

const run = (compute: string, more = ''): RunSpec => {
  const { value, issues } = loadRun(`
name: seven
model: { preset: llama2-7b }
code: { source: builtin }
training: { sequenceLength: 4096, microBatchSize: 1, globalBatchSize: 64, totalTokens: 1.0e9, precision: bf16, activationCheckpointing: none${more} }
compute: ${compute}
data: [{ channel: train, s3: 's3://{dataBucket}/t/' }]
`);
  if (!value) throw new Error(JSON.stringify(issues));
  return value;
};
const LARGE = '{ instanceType: ml.p5.48xlarge, instanceCount: 2 }';
const WITH_SMALL =
  '{ instanceType: ml.p5.48xlarge, instanceCount: 2, alternatives: [{ instanceType: ml.p4de.24xlarge }, { instanceType: ml.p4d.24xlarge }] }';

describe('memory check', () => {
  test('says nothing about a run that fits, nor about one that the planner does not know', () => {
    expect(memoryIssues(run(LARGE), 'us-west-2')).toEqual([]);
    expect(memoryIssues(run('{ instanceType: ml.m5.xlarge, instanceCount: 2 }'), 'us-west-2')).toEqual([]);
  });

  test('refuses a run whose weights and optimizer all NeuronCores together cannot hold', () => {
    const trainium = (instanceCount: number): RunSpec =>
      runOf({
        name: 'trn',
        code: { source: './src' },
        model: { preset: 'deepseek-v3' },
        training: { sequenceLength: 4096, microBatchSize: 1 },
        compute: { instanceType: 'ml.trn2.48xlarge', instanceCount },
      });
    expect(memoryIssues(trainium(4), 'us-west-2').map((i) => i.message)).toEqual([
      expect.stringMatching(
        /^training: must fit the 24 GiB of one NeuronCore of ml.trn2.48xlarge, got \d+ GiB; use more instances$/,
      ),
    ]);
    expect(memoryIssues(trainium(8), 'us-west-2')).toEqual([]);
  });

  test('names the alternative that cannot hold the run, by its place', () => {
    const wide = run(WITH_SMALL);
    const paths = memoryIssues(large(wide), 'us-west-2').map((i) => i.path);
    expect(paths).toEqual(['compute.alternatives[1].instanceType']);
    expect(memoryIssues(large(wide), 'us-west-2')[0]?.message).toMatch(
      /must fit the \d+ GiB of one GPU of ml.p4d.24xlarge/,
    );
  });

  test('leaves such an alternative out of what is asked of the service', () => {
    const types = withFittingAlternatives(large(run(WITH_SMALL)), 'us-west-2').compute.alternatives.map(
      (a) => a.instanceType,
    );
    expect(types).toEqual(['ml.p4de.24xlarge']);
  });

  test('refuses the run itself when it cannot fit', () => {
    const huge = { ...run(LARGE), training: { ...run(LARGE).training, microBatchSize: 64, globalBatchSize: 1024 } };
    expect(fitsMemory(huge, 'us-west-2')).toBe(false);
    expect(memoryIssues(huge, 'us-west-2').map((i) => [i.rule, i.path])).toEqual([['plan/memory', 'training']]);
  });
});

/** Too large for 40 GB a GPU, small enough for 80. */
const large = (spec: RunSpec): RunSpec => ({ ...spec, training: { ...spec.training, microBatchSize: 2 } });
