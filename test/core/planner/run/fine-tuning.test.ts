import { expect, test } from 'vitest';
import { planRun, type RunPlan } from '../../../../lib/core/planner/run/plan-run';
import { searchRun } from '../../../../lib/core/search/search-run';
import { runOf } from '../../../support/runs';

const GIB = 2 ** 30;
const PARAMETERS = 8_030_261_248;
const TABLE = 128256 * 4096;
const file = (training: object, compute: object = {}) => ({
  name: 'tuned',
  code: { source: 'builtin' },
  model: { preset: 'llama3-8b', weights: 's3://bucket/weights/' },
  training: {
    sequenceLength: 4096,
    microBatchSize: 1,
    globalBatchSize: 64,
    steps: 100,
    activationCheckpointing: 'full',
    ...training,
  },
  compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 1, ...compute },
  data: [{ channel: 'train', s3: 's3://bucket/tokens/' }],
});

function planned(training: object): RunPlan {
  const plan = planRun(runOf(file(training)), { region: 'us-west-2' });
  if (Array.isArray(plan)) throw new Error(plan.map((i) => i.message).join('\n'));
  return plan;
}

const PLAIN = planned({ objective: 'pretrain', microBatchSize: 2, globalBatchSize: 128 });
const DPO = planned({ objective: 'dpo' });
const LORA = { lora: { rank: 16 } };

test('a pair counts as two sequences', () => {
  expect([DPO.tokens, DPO.tokens && DPO.microBatches]).toEqual([PLAIN.tokens, PLAIN.microBatches]);
  expect(DPO.memoryGiB.logits).toBeCloseTo(PLAIN.memoryGiB.logits, 9);
});

// The copy in bf16 over 8 GPUs, and its embedding and head, which FSDP leaves gathered: 7/8 of them lie on other GPUs.
test('the frozen reference is held in bf16, sharded, with gathered ends', () => {
  const reference = (2 * PARAMETERS) / 8 + 2 * 2 * TABLE * (7 / 8);
  expect(DPO.memoryGiB.parameters - PLAIN.memoryGiB.parameters).toBeCloseTo(reference / GIB, 6);
  expect(DPO.memoryGiB.gradients).toBeCloseTo(PLAIN.memoryGiB.gradients, 6);
  expect(DPO.memoryGiB.optimizer).toBeCloseTo(PLAIN.memoryGiB.optimizer, 6);
});

test('the reference adds one forward pass to the three of training', () => {
  expect(DPO.breakdown.matmul / PLAIN.breakdown.matmul).toBeCloseTo(4 / 3, 9);
  expect(DPO.breakdown.recompute).toBeCloseTo(PLAIN.breakdown.recompute, 9);
  expect(DPO.breakdown.optimizer).toBeCloseTo(PLAIN.breakdown.optimizer, 9);
  expect(DPO.stepSeconds).toBeGreaterThan(PLAIN.stepSeconds * 1.15);
  expect(DPO.stepSeconds).toBeLessThan((PLAIN.stepSeconds * 4) / 3);
});

// Rank 16 of q_proj (4096 to 4096) and v_proj (4096 to 1024) in 32 blocks.
test('adapters alone have gradients and optimizer state, and frozen weights no product for their gradient', () => {
  const plan = planned({ objective: 'pretrain', ...LORA, microBatchSize: 2, globalBatchSize: 128 });
  const adapters = 32 * 16 * (4096 + 4096 + 4096 + 1024);
  expect(plan.layout.adapters).toBe(adapters);
  expect(plan.memoryGiB.optimizer).toBeCloseTo((8 * adapters) / 8 / GIB, 9);
  expect(plan.memoryGiB.parameters).toBeCloseTo(PLAIN.memoryGiB.parameters, 9);
  expect(plan.breakdown.matmul / PLAIN.breakdown.matmul).toBeCloseTo(2 / 3, 9);
  expect(plan.memoryGiB.total).toBeLessThan(PLAIN.memoryGiB.total);
});

test('with adapters the reference of preferences needs no memory', () => {
  const plan = planned({ objective: 'dpo', ...LORA });
  expect(plan.memoryGiB.parameters).toBeCloseTo(PLAIN.memoryGiB.parameters, 9);
  expect(plan.breakdown.matmul / PLAIN.breakdown.matmul).toBeCloseTo(1, 9);
});

test('what no run has measured has a wider interval, and the plan says so', () => {
  const width = ({
    interval80: {
      tokensPerSecondPerGpu: [low, high],
    },
  }: RunPlan) => Math.log(high / low);
  expect(width(DPO)).toBeGreaterThan(width(PLAIN) + 0.15);
  expect(DPO.assumptions.join('\n')).toContain('no published run measures preferences');
  expect(planned({ objective: 'sft', ...LORA }).assumptions.join('\n')).toContain('6.8 M parameters of adapters');
});

test('a search of preferences stays in pairs', () => {
  const found = searchRun(runOf(file({ objective: 'dpo' })), { region: 'us-west-2' });
  if (Array.isArray(found)) throw new Error(found.map((i) => i.message).join('\n'));
  expect(found.candidates.length).toBeGreaterThan(0);
  for (const { training } of found.candidates) expect(64 % ((training.microBatchSize ?? 1) * 8)).toBe(0);
});

test('fails: adapters in layers whose shape is not known', () => {
  const plan = planRun(runOf(file({ lora: { rank: 8, targets: ['q_proj', 'q_a_proj'] } })), { region: 'us-west-2' });
  expect(plan).toMatchObject([
    {
      path: 'training.lora.targets',
      message:
        'training.lora.targets: must be layers of dense blocks that are all alike for a plan (q_proj, k_proj, v_proj, o_proj, up_proj, down_proj, gate_proj, head), got ["q_proj","q_a_proj"]; plan without lora for an upper bound',
    },
  ]);
});
