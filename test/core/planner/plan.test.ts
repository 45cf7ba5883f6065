import { expect, test } from 'vitest';
import { parameterCount } from '../../../lib/core/catalog/model/parameters';
import { CONSTANTS } from '../../../lib/core/planner/constants';
import type { LayoutInput } from '../../../lib/core/planner/layout';
import { planLayout } from '../../../lib/core/planner/plan';
import { acceleratorNamed, LLAMA_8B, layout, planOf } from '../../support/layouts';

test('the 8B preset has 8.03 billion parameters', () => {
  expect(parameterCount(LLAMA_8B) / 1e9).toBeCloseTo(8.03, 2);
});

test('states of full sharding are 16 bytes a parameter over the ranks: fp32 copy, gradient and two moments', () => {
  const { memoryGiB } = planOf(layout());
  const states = memoryGiB.parameters + memoryGiB.gradients + memoryGiB.optimizer;
  expect(states).toBeCloseTo((16 * parameterCount(LLAMA_8B)) / 16 / 2 ** 30, 6);
});

test.each([
  [{ shard: 8 }, 'shard 8 x replicate 1 x tensor 1 x pipeline 1 x context 1 is 8, the cluster has 16 GPUs'],
  [{ tensor: 16, shard: 1, model: { ...LLAMA_8B, heads: 24 } }, 'tensor 16 does not divide 24 heads'],
  [{ pipeline: 16, shard: 1, model: { ...LLAMA_8B, layers: 8 } }, 'pipeline 16 exceeds the 8 layers'],
  [{ context: 16, shard: 1, sequence: 8200 }, 'context 16 does not divide sequence 8200'],
  [{ globalBatch: 8 }, 'micro-batch 1 x 16 data-parallel ranks exceeds the global batch 8'],
])('fails: a layout that cannot run says why (%o)', (changes, reason) => {
  expect(planLayout(layout(changes))).toBe(reason);
});

test('fails: an accelerator without a known matrix peak', () => {
  const accelerator = { kind: 'gpu' as const, model: 'Old GPU', count: 8, memoryGiB: 12 };
  expect(planLayout(layout({ accelerator }))).toBe('Old GPU has no known matrix throughput');
});

test('the verdict goes from fits over tight to oom as the micro-batch grows, and a tight plan stays within the GPU', () => {
  const plans = Array.from({ length: 24 }, (_, i) => planOf(layout({ microBatch: i + 1, globalBatch: 16 * (i + 1) })));
  const verdicts = plans.map((p) => p.fits);
  expect([...new Set(verdicts)]).toEqual(['fits', 'tight', 'oom']);
  expect(
    [...verdicts].sort((a, b) => ['fits', 'tight', 'oom'].indexOf(a) - ['fits', 'tight', 'oom'].indexOf(b)),
  ).toEqual(verdicts);
  for (const plan of plans.filter((p) => p.fits === 'tight'))
    expect(plan.memoryGiB.total).toBeLessThanOrEqual(plan.availableGiB);
});

test('a layout is out of memory if one pipeline stage is, also when the allocator of another one would reserve more', () => {
  const model = { ...LLAMA_8B, layers: 76, mlpMatrices: 2 };
  const stages = layout({
    model,
    accelerator: acceleratorNamed('A100-80GB'),
    networkGbps: 400,
    shard: 4,
    pipeline: 4,
    microBatch: 16,
    globalBatch: 128,
    sequence: 2048,
    recompute: 'block',
    sequenceParallel: false,
    offloadOptimizer: true,
    stack: 'megatron',
  });
  expect(planOf(stages).fits).toBe('oom');
});

test('SMDDP AllGather is faster than NCCL on many ml.p4d.24xlarge and changes nothing on one node', () => {
  const many = layout({ nodes: 64, shard: 512, networkGbps: 400, globalBatch: 512, sequence: 4096 });
  expect(planOf({ ...many, collectives: 'smddp' }).step.total).toBeLessThan(planOf(many).step.total);
  const one = layout({ nodes: 1, shard: 8 });
  expect(planOf({ ...one, collectives: 'smddp' }).step.total).toBe(planOf(one).step.total);
});

test('under ZeRO-1 nanotron scatters gradients that Megatron-DeepSpeed reduces whole', () => {
  const zero1 = { nodes: 8, shard: 64, zeroStage: 1, globalBatch: 64 } as const;
  const gradients = (stack: LayoutInput['stack']) => planOf(layout({ ...zero1, stack })).step.dataParallel;
  expect(gradients('nanotron') / gradients('megatron-legacy')).toBeCloseTo(0.6, 2);
});

test('tensor-parallel collectives that nothing overlaps leave a gap each, however small they are', () => {
  const split = { tensor: 8, shard: 2, sequence: 128, recompute: 'none' } as const;
  const { tensorParallel } = planOf(layout(split)).step;
  const collectives = 4 * 32 * 32;
  expect(tensorParallel).toBeGreaterThan(collectives * CONSTANTS.tensorGapSeconds);
});

test('uneven pipeline stages run, and take as long as the fullest one', () => {
  const staged = (layers: number) =>
    layout({
      model: { ...LLAMA_8B, layers },
      pipeline: 4,
      shard: 4,
      zeroStage: 1,
      stack: 'megatron',
      kernels: 'fused',
    });
  expect(planOf(staged(30)).step.matmul).toBeCloseTo(planOf(staged(32)).step.matmul, 9);
});

test('hardware FLOPs count the recomputed blocks, model FLOPs do not', () => {
  const none = planOf(layout({ recompute: 'none' }));
  const full = planOf(layout({ recompute: 'full' }));
  expect(none.hardwareTflopsPerGpu).toBe(none.modelTflopsPerGpu);
  expect(full.hardwareTflopsPerGpu / full.modelTflopsPerGpu).toBeGreaterThan(1.25);
  expect(full.hardwareTflopsPerGpu / full.modelTflopsPerGpu).toBeLessThan(4 / 3);
});
