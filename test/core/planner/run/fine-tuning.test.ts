import { expect, test } from 'vitest';
import type { LayoutInput } from '../../../../lib/core/planner/layout';
import { planLayout } from '../../../../lib/core/planner/plan';
import { layoutOfRun } from '../../../../lib/core/planner/run/layout-of-run';
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
/** Rank 16 of q_proj (4096 to 4096) and v_proj (4096 to 1024) in 32 blocks. */
const ADAPTERS = 32 * 16 * (4096 + 4096 + 4096 + 1024);

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

test('adapters alone have gradients and optimizer state, and frozen weights no product for their gradient', () => {
  const plan = planned({ objective: 'pretrain', ...LORA, microBatchSize: 2, globalBatchSize: 128 });
  const adapters = ADAPTERS;
  expect(plan.layout.adapters).toBe(adapters);
  expect(plan.memoryGiB.optimizer).toBeCloseTo((8 * adapters) / 8 / GIB, 9);
  expect(plan.memoryGiB.parameters).toBeCloseTo(PLAIN.memoryGiB.parameters + (4 * adapters) / 8 / GIB, 9);
  expect(plan.breakdown.matmul / PLAIN.breakdown.matmul).toBeCloseTo(2 / 3, 9);
  expect(plan.memoryGiB.total).toBeLessThan(PLAIN.memoryGiB.total);
});

test('with adapters the reference of preferences needs no memory', () => {
  const plan = planned({ objective: 'dpo', ...LORA });
  expect(plan.memoryGiB.parameters).toBeCloseTo(PLAIN.memoryGiB.parameters + (4 * ADAPTERS) / 8 / GIB, 9);
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

const MATRICES = 32 * 4096 * (2 * 4096 + 2 * 1024 + 3 * 14336);
const NF4 = { lora: { rank: 16, quantization: 'nf4' } };

test('matrices of blocks in 4 bits take 0.5625 bytes per parameter, and the others keep theirs', () => {
  const [plain, packed] = [LORA, NF4].map((lora) => planned({ objective: 'sft', ...lora }));
  const bytes = (4 * (PARAMETERS - MATRICES + ADAPTERS) + 0.5625 * MATRICES) / 8;
  expect(packed?.memoryGiB.parameters).toBeCloseTo(bytes / GIB, 6);
  expect(packed?.memoryGiB.optimizer).toBeCloseTo(plain?.memoryGiB.optimizer ?? 0, 9);
  // Two gathered blocks, and the largest matrix in bf16.
  const block = MATRICES / 32;
  expect((plain?.memoryGiB.working ?? 0) - (packed?.memoryGiB.working ?? 0)).toBeCloseTo((2 * 1.4375 * block) / GIB, 6);
  expect((packed?.memoryGiB.buffers ?? 0) - (plain?.memoryGiB.buffers ?? 0)).toBeCloseTo((2 * 4096 * 14336) / GIB, 6);
  expect(packed?.assumptions.join('\n')).toContain('0.5625 bytes per parameter');
  expect(packed?.stepSeconds ?? 0).toBeGreaterThan(plain?.stepSeconds ?? 0);
});

test('checkpoints contain frozen weights without moments, and adapters with them', () => {
  const sizes = [{}, LORA, NF4].map((lora) => planned({ objective: 'sft', ...lora }).checkpoint.sizeGiB * GIB);
  expect(sizes[0]).toBeCloseTo(12 * PARAMETERS, -3);
  expect(sizes[1]).toBeCloseTo(4 * PARAMETERS + 12 * ADAPTERS, -3);
  expect(sizes[2]).toBeCloseTo(4 * (PARAMETERS - MATRICES) + 12 * ADAPTERS + 0.5625 * MATRICES, -3);
});

test('a model of 8B fits on one GPU of 24 GB, and one of 70B on four of 48 GB', () => {
  const on = (instanceType: string, preset: string, training: object) =>
    planRun(runOf({ ...file(training, { instanceType }), model: { preset, weights: 's3://bucket/weights/' } }), {
      region: 'us-west-2',
    });
  for (const [type, preset] of [
    ['ml.g5.xlarge', 'llama3-8b'],
    ['ml.g6e.12xlarge', 'llama3-70b'],
  ] as const) {
    expect(on(type, preset, { objective: 'sft', ...LORA })).toMatchObject({ fits: 'oom' });
    expect(on(type, preset, { objective: 'sft', ...NF4 })).toMatchObject({ fits: 'fits' });
  }
});

// LitGPT's table, https://github.com/Lightning-AI/litgpt/blob/4839345a97a0/tutorials/resource-tables.md, 2023-10-20: minutes of 1,000
// iterations of LoRA on one A100 with 40 GB, without quantization and with nf4.
test.each([
  ['llama2-7b', 2.36, 3.68],
  ['llama2-13b', 3.19, 6.38],
] as const)('an iteration of %s takes longer by about what LitGPT measured', (preset, plain, quantized) => {
  const p4d = file({ objective: 'sft', ...NF4 }, { instanceType: 'ml.p4d.24xlarge' });
  const found = layoutOfRun(runOf({ ...p4d, model: { preset, weights: 's3://bucket/weights/' } }));
  if (Array.isArray(found)) throw new Error(found.map((i) => i.message).join('\n'));
  const alone = { nodes: 1, gpusPerNode: 1, shard: 1, zeroStage: 0, globalBatch: 1, wrapsOneRank: false } as const;
  const layout = { ...found.layout, ...alone, recompute: 'none', sequence: 512 } as const;
  const seconds = (l: LayoutInput) => {
    const plan = planLayout(l);
    if (typeof plan === 'string') throw new Error(plan);
    return plan.step.total;
  };
  const added = seconds(layout) - seconds({ ...layout, quantized: false });
  expect(added / ((quantized - plain) * 0.06)).toBeGreaterThan(0.7);
  expect(added / ((quantized - plain) * 0.06)).toBeLessThan(1.4);
});

const mixture = (preset: string, training: object, distribution: object = {}): RunPlan => {
  const run = runOf({
    ...file({ objective: 'sft', ...training }, { instanceType: 'ml.p5en.48xlarge' }),
    model: { preset, weights: 's3://bucket/w/' },
    distribution: { library: 'fsdp', parameters: distribution },
  });
  const plan = planRun(run, { region: 'us-west-2' });
  if (Array.isArray(plan)) throw new Error(plan.map((i) => i.message).join('\n'));
  return plan;
};
const EVERYWHERE = {
  rank: 8,
  targets: ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'],
};

// 48 blocks of 128 experts; in each, attention of 2048 to 4096 and 512, and three matrices of 2048 x 768 per expert.
test('experts are stored in 4 bits, on each rank those that it holds, and have adapters of their own', () => {
  const lora = { ...EVERYWHERE, quantization: 'nf4' };
  const experts = 48 * 128;
  const matrices = 48 * 2048 * (2 * 4096 + 2 * 512) + 3 * experts * 2048 * 768;
  const adapters = 8 * (48 * (2 * (2048 + 4096) + 2 * (2048 + 512)) + 3 * experts * (2048 + 768));
  for (const degree of [1, 8]) {
    const plan = mixture('qwen3-30b-a3b', { lora }, { expert_parallel_degree: degree });
    expect([plan.layout.adapters, plan.layout.expertAdapters]).toEqual([adapters, 8 * 3 * experts * (2048 + 768)]);
    const others = 30_532_122_624 - matrices;
    expect(plan.memoryGiB.parameters * 8 * GIB).toBeCloseTo(4 * (others + adapters) + 0.5625 * matrices, -5);
    expect(plan.memoryGiB.optimizer * GIB).toBeCloseTo(adapters, -3);
    expect(plan.assumptions.join('\n')).toContain('one after the other');
  }
});

test('experts in 4 bits take the time of launching their kernels, less where ranks divide them', () => {
  const [plain, packed, divided] = [
    mixture('qwen3-30b-a3b', LORA),
    mixture('qwen3-30b-a3b', NF4),
    mixture('qwen3-30b-a3b', NF4, { expert_parallel_degree: 8 }),
  ];
  expect(packed.breakdown.host).toBeGreaterThan(plain.breakdown.host + 48 * 128 * 3e-4);
  expect(divided.breakdown.host).toBeLessThan(packed.breakdown.host / 4);
});

// axolotl-ai-cloud/axolotl#3787 reports 17 to 24 GiB; embedding, head and norms are in fp32 here.
test('adapters of attention on a mixture of 30B in 4 bits fit on one GPU of 32 GB', () => {
  const alone = { nodes: 1, gpusPerNode: 1, shard: 1, zeroStage: 0, globalBatch: 1, sequence: 2048 } as const;
  const { layout } = mixture('qwen3-30b-a3b', NF4);
  const plan = planLayout({ ...layout, ...alone });
  if (typeof plan === 'string') throw new Error(plan);
  expect(plan.memoryGiB.total).toBeGreaterThan(17);
  expect(plan.memoryGiB.total).toBeLessThan(28);
});

test('layers without experts, with shared ones and with latent attention are counted by their own sizes', () => {
  const plan = mixture('deepseek-v3', { lora: { rank: 4, targets: ['q_b_proj', 'kv_b_proj', 'down_proj'] } });
  const attention = 1536 + 128 * 192 + 512 + 128 * 256;
  const [dense, experts, shared] = [18_432 + 7168, 256 * (2048 + 7168), 2048 + 7168];
  expect(plan.layout.adapters).toBe(4 * (61 * attention + 3 * dense + 58 * (experts + shared)));
});

test('fails: adapters in layers that the model does not have', () => {
  const plan = planRun(runOf(file({ lora: { rank: 8, targets: ['q_proj', 'q_a_proj'] } })), { region: 'us-west-2' });
  expect(plan).toMatchObject([
    { path: 'training.lora.targets', message: expect.stringContaining('got ["q_proj","q_a_proj"]') },
  ]);
});
