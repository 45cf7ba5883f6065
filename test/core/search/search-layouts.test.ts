import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planLayout } from '../../../lib/core/planner/plan';
import { paretoFront, searchLayouts, spaceAround } from '../../../lib/core/search/search-layouts';
import { acceleratorNamed, layout } from '../../support/layouts';

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
  const { byTime, byCost, considered, outOfMemory } = searchLayouts(megatron70b, {
    ...spaceAround(megatron70b),
    clusters: [{ name: 'p5', cluster: megatron70b, usdPerHour: 64 * 63.296 }],
  });
  expect(byTime.length).toBeGreaterThan(0);
  expect(considered).toBeGreaterThan(outOfMemory);
  for (const found of [...byTime, ...byCost]) {
    const plan = planLayout(found.layout);
    if (typeof plan === 'string') throw new Error(plan);
    expect(plan.fits).not.toBe('oom');
    expect(found.stepSeconds).toBeCloseTo(plan.step.total, 9);
    expect(found.tokensPerSecondPerGpu).toBeCloseTo(plan.tokensPerSecondPerGpu, 6);
    expect(found.usdPerStep).toBeCloseTo((64 * 63.296 * plan.step.total) / 3600, 9);
  }
  expect([...byTime].sort((a, b) => a.stepSeconds - b.stepSeconds)).toEqual(byTime);
});

test('no layout of the space is faster than the first one found', () => {
  const base = layout({ nodes: 4, shard: 32, globalBatch: 128 });
  const space = {
    tensor: [1, 2, 4, 8],
    shard: [8, 16, 32],
    microBatch: [1, 2, 4],
    recompute: ['none', 'op', 'full'] as const,
  };
  const [best] = searchLayouts(base, space).byTime;
  const all = space.tensor.flatMap((tensor) =>
    space.shard.flatMap((shard) =>
      space.microBatch.flatMap((microBatch) =>
        space.recompute.map((recompute) =>
          planLayout({ ...base, tensor, shard, replicate: 32 / tensor / shard, microBatch, recompute }),
        ),
      ),
    ),
  );
  const fastest = all.flatMap((plan) => (typeof plan === 'string' || plan.fits === 'oom' ? [] : [plan.step.total]));
  expect(best?.stepSeconds).toBe(Math.min(...fastest));
});

test('rules refuse layouts inside the search', () => {
  const base = layout({ nodes: 4, shard: 32, globalBatch: 128 });
  const space = { tensor: [1, 2, 4, 8] };
  const free = searchLayouts(base, space);
  const held = searchLayouts(base, space, {
    refuses: (l) => (l.tensor > 2 ? 'tensor parallelism above 2' : undefined),
  });
  expect(held.refused).toBe(free.refused + 2);
  expect(held.byTime.every((f) => f.layout.tensor <= 2)).toBe(true);
});

test('hours, dollars and quota bound what is found', () => {
  const clusters = [1, 2, 4, 8].map((nodes) => ({
    name: `${nodes}`,
    cluster: { accelerator: acceleratorNamed('H100-80GB'), nodes, gpusPerNode: 8, networkGbps: 3200 },
    usdPerHour: 63.296 * nodes,
  }));
  const base = layout({ globalBatch: 512 });
  const steps = 1000;
  const open = searchLayouts(base, { clusters, shard: [8], recompute: ['op', 'full'] }, { steps });
  const hours = (f: { stepSeconds: number }) => (steps * f.stepSeconds) / 3600;
  const middle = open.byTime[Math.floor(open.byTime.length / 2)];
  const maxHours = middle ? hours(middle) : 0;
  const bounded = searchLayouts(
    base,
    { clusters, shard: [8], recompute: ['op', 'full'] },
    { steps, maxHours, maxNodes: 4 },
  );
  expect(bounded.byTime.length).toBeGreaterThan(0);
  expect(bounded.byTime.every((f) => hours(f) <= maxHours && f.layout.nodes <= 4)).toBe(true);
});

test('a layout without a known price is found by time and not by cost', () => {
  const found = searchLayouts(layout(), { microBatch: [1, 2] });
  expect(found.byTime.length).toBe(2);
  expect([found.byCost, found.pareto]).toEqual([[], []]);
});

test('the Pareto front holds exactly what nothing beats in both figures', () => {
  const point = fc.tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 30 }));
  fc.assert(
    fc.property(fc.array(point, { maxLength: 40 }), (points) => {
      const front = paretoFront(
        points,
        (p) => p[0],
        (p) => p[1],
      );
      const beaten = (p: [number, number]) =>
        points.some((o) => o[0] <= p[0] && o[1] <= p[1] && (o[0] < p[0] || o[1] < p[1]));
      expect(front.some(beaten)).toBe(false);
      const values = (list: [number, number][]) => new Set(list.map((p) => p.join()));
      expect(values(front)).toEqual(values(points.filter((p) => !beaten(p))));
    }),
  );
});
