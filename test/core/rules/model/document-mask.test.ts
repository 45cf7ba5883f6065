import { expect, test } from 'vitest';
import { planLayout } from '../../../../lib/core/planner/plan';
import { layoutOfRun } from '../../../../lib/core/planner/run/layout-of-run';
import { BASE, issuesOf, runOf } from '../../../support/runs';

const TRAINING = { sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 16, steps: 10, documentMask: true };
const file = (changes: object = {}, training: object = {}) => ({
  ...BASE,
  model: { preset: 'llama3-8b' },
  training: { ...TRAINING, ...training },
  code: { source: 'builtin' },
  compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 1 },
  distribution: { library: 'fsdp' },
  data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
  ...changes,
});
const found = (changes: object, training: object = {}) => issuesOf(file(changes, training), 'training/document-mask');

test('a mask of documents goes with fsdp, ddp, tensor and context parallelism', () => {
  expect(found({})).toEqual([]);
  expect(found({ distribution: { library: 'ddp' } })).toEqual([]);
  expect(found({ distribution: { library: 'fsdp', parameters: { tensor_parallel_degree: 2 } } })).toEqual([]);
  expect(found({ distribution: { library: 'fsdp', parameters: { context_parallel_degree: 2 } } })).toEqual([]);
});

test.each([
  [{ distribution: { library: 'deepspeed' } }, {}, 'training.documentMask'],
  [{}, { objective: 'sft' }, 'training.documentMask'],
])('a mask of documents is refused with %j %j', (changes, training, path) => {
  expect(found(changes, training)).toMatchObject([{ level: 'error', path }]);
});

test('a mask of documents for own code is warned of', () => {
  expect(found({ code: { source: './train' } })).toMatchObject([{ level: 'warning' }]);
});

function planned(training: object, changes: object = {}) {
  const found = layoutOfRun(runOf(file(changes, training)));
  if (Array.isArray(found)) throw new Error(JSON.stringify(found));
  const plan = planLayout(found.layout);
  if (typeof plan === 'string') throw new Error(plan);
  return { assumptions: found.assumptions, plan };
}

test('a plan counts FlexAttention over a row of one document, without a mask in memory', () => {
  const [plain, masked] = [planned({ documentMask: false }), planned({})];
  expect(masked.assumptions.join()).toMatch(/that of one document in FlexAttention/);
  expect(plain.assumptions.join()).not.toMatch(/FlexAttention/);
  expect(masked.plan.step.attention / plain.plan.step.attention).toBeCloseTo(1.6, 5);
  expect(masked.plan.memoryGiB).toEqual(plain.plan.memoryGiB);
});

test('a window costs its own size, in the built-in trainer by FlexAttention', () => {
  const attention = (size: number, changes: object) =>
    planned(
      { documentMask: false },
      { model: { architecture: { ...SMALL, slidingWindow: { size, pattern: 'all' } } }, ...changes },
    ).plan.step.attention;
  const megatron = { code: { source: './train' }, distribution: { library: 'megatron' } };
  const share = (changes: object) => attention(1024, changes) / attention(8192, changes);
  expect(share(megatron)).toBeLessThan(0.3);
  expect(share({}) / share(megatron)).toBeCloseTo(1.6, 1);
});

const SMALL = { layers: 4, hiddenSize: 4096, attentionHeads: 32, ffnHiddenSize: 11008, vocabularySize: 32000 };
