import { expect, test } from 'vitest';
import { planLayout } from '../../../lib/core/planner/plan';
import { searchLayouts, spaceAround } from '../../../lib/core/search/search-layouts';
import { layout } from '../../support/layouts';

const LLAMA_70B = {
  layers: 80,
  hidden: 8192,
  heads: 64,
  kvHeads: 8,
  headSize: 128,
  ffn: 28672,
  mlpMatrices: 3,
  vocabulary: 128256,
  tiedEmbeddings: false,
  experts: 1,
  expertsPerToken: 1,
};

const megatron70b = layout({
  model: LLAMA_70B,
  nodes: 64,
  tensor: 8,
  pipeline: 4,
  shard: 16,
  zeroStage: 1,
  stack: 'megatron',
  kernels: 'fused',
  overlapsTensor: true,
  recompute: 'none',
  globalBatch: 2048,
});

test('a search around a 70B model on 64 ml.p5.48xlarge considers every layout of its space once', () => {
  const considered = (...microBatch: number[]) =>
    searchLayouts(megatron70b, { ...spaceAround(megatron70b), microBatch }).considered;
  expect(considered(1)).toBeGreaterThan(1000);
  expect(considered(1, 2)).toBe(considered(1) + considered(2));
});

test('what is found fits, can run and is what a plan of it says', () => {
  const { fastest, considered } = searchLayouts(megatron70b, spaceAround(megatron70b));
  expect(fastest.length).toBeGreaterThan(0);
  expect(considered).toBeGreaterThan(fastest.length);
  for (const found of fastest) {
    const plan = planLayout(found.layout);
    if (typeof plan === 'string') throw new Error(plan);
    expect(plan.fits).not.toBe('oom');
    expect(found.stepSeconds).toBeCloseTo(plan.step.total, 9);
    expect(found.tokensPerSecondPerGpu).toBeCloseTo(plan.tokensPerSecondPerGpu, 6);
  }
  expect([...fastest].sort((a, b) => a.stepSeconds - b.stepSeconds)).toEqual(fastest);
});

test('no layout of the space is faster than the first one found', () => {
  const base = layout({ nodes: 4, shard: 32, globalBatch: 128 });
  const space = {
    tensor: [1, 2, 4, 8],
    shard: [8, 16, 32],
    microBatch: [1, 2, 4],
    recompute: ['none', 'op', 'full'] as const,
  };
  const [best] = searchLayouts(base, space).fastest;
  const all = space.tensor.flatMap((tensor) =>
    space.shard.flatMap((shard) =>
      space.microBatch.flatMap((microBatch) =>
        space.recompute.map((recompute) =>
          planLayout({ ...base, tensor, shard, replicate: 32 / tensor / shard, microBatch, recompute }),
        ),
      ),
    ),
  );
  const times = all.flatMap((plan) => (typeof plan === 'string' || plan.fits === 'oom' ? [] : [plan.step.total]));
  expect(best?.stepSeconds).toBe(Math.min(...times));
});
