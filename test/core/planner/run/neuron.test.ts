import { expect, test } from 'vitest';
import { type NeuronPlan, planNeuron } from '../../../../lib/core/planner/run/neuron';
import { runOf } from '../../../support/runs';

const TRN2 = { instanceType: 'ml.trn2.48xlarge', instanceCount: 2 };
const file = (changes: object = {}) => ({
  name: 'trn',
  code: { source: './src' },
  model: { preset: 'llama3-8b' },
  training: { sequenceLength: 4096, microBatchSize: 1, activationCheckpointing: 'full' },
  compute: TRN2,
  ...changes,
});
function planned(changes: object = {}): NeuronPlan {
  const plan = planNeuron(runOf(file(changes)));
  if (!plan || Array.isArray(plan)) throw new Error(JSON.stringify(plan));
  return plan;
}

test('weights, gradients and AdamW in fp32 are 16 bytes a parameter, over all NeuronCores, whatever the tensor degree', () => {
  const plan = planned();
  expect(plan).toMatchObject({ cores: 128, coreGiB: 24, fits: 'unknown', tokensPerSecond: null, usd: null });
  expect(plan.layouts.map(({ tensor, shard }) => [tensor, shard])).toEqual([
    [1, 128],
    [4, 32],
  ]);
  for (const { memoryGiB: m } of plan.layouts) {
    const late = m.parameters + m.optimizer;
    expect((late * 2 ** 30 * plan.cores) / plan.parameters).toBeCloseTo(12, 1);
    expect(m.gradients).toBeLessThanOrEqual(m.parameters);
    const { total, ...parts } = m;
    expect(Object.values(parts).reduce((sum, part) => sum + part, 0)).toBeCloseTo(total, 6);
  }
  const [alone, chip] = plan.layouts;
  // 32 block inputs of 4,096 tokens by 4,096 in 16 bit, and one block in work.
  expect(alone?.memoryGiB.activations).toBeGreaterThan((32 * 4096 * 4096 * 2) / 2 ** 30);
  expect((alone?.memoryGiB.logits ?? 0) / (chip?.memoryGiB.logits ?? 1)).toBeCloseTo(4, 6);
});

test.each([
  ['two to a bank', { environmentVariables: { NEURON_LOGICAL_NC_CONFIG: '1' } }, [256, 12], [1, 8]],
  ['Trainium1', { compute: { instanceType: 'ml.trn1.32xlarge', instanceCount: 1 } }, [32, 16], [1, 2]],
  ['fewer processes', { distribution: { processesPerHost: 16 } }, [32, 96], [1]],
])('cores and tensor degrees: %s', (_, changes, [cores, coreGiB], degrees) => {
  const plan = planned(changes);
  expect([plan.cores, plan.coreGiB]).toEqual([cores, coreGiB]);
  expect(plan.layouts.map(({ tensor }) => tensor)).toEqual(degrees);
});

test('a model whose state all cores together cannot hold does not fit', () => {
  const giant = { model: { preset: 'deepseek-v3' } };
  expect(planned({ ...giant, compute: { ...TRN2, instanceCount: 4 } }).fits).toBe('oom');
  expect(planned({ ...giant, compute: { ...TRN2, instanceCount: 8 } }).fits).toBe('unknown');
});

test('what is asked is what plans of GPUs ask, and other hosts have no such plan', () => {
  expect(planNeuron(runOf(file({ training: { microBatchSize: 1 } })))).toMatchObject([
    { message: expect.stringContaining('training.sequenceLength: must be given for a plan') },
  ]);
  expect(planNeuron(runOf(file({ compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 1 } })))).toBeUndefined();
});
