import { expect, test } from 'vitest';
import { parameterShape } from '../../../lib/core/catalog/model/parameters';
import { findModel } from '../../../lib/core/catalog/models';
import type { LayoutInput } from '../../../lib/core/planner/layout';
import { type LayoutPlan, planLayout } from '../../../lib/core/planner/plan';
import { shardTraffic } from '../../../lib/core/planner/time/network';
import { acceleratorNamed, layout } from '../../support/layouts';

function model(name: string) {
  const shape = findModel(name);
  if (!shape) throw new Error(`no model ${name}`);
  return parameterShape(shape);
}

function planned(changes: Partial<LayoutInput>): LayoutPlan {
  const plan = planLayout(layout(changes));
  if (typeof plan === 'string') throw new Error(plan);
  return plan;
}

const exchange = (changes: Partial<LayoutInput>) => planned(changes).step.expertParallel;

const QWEN3_30B = { model: model('qwen3-30b-a3b'), sequence: 4096 };
/** Megatron-Core with its distributed optimizer: parameters and gradients are whole on each rank, the optimizer is not. */
const MEGATRON = { stack: 'megatron', kernels: 'fused', zeroStage: 1, gradientBytes: 4 } as const;

test('under Megatron the ranks of an expert group share the experts, and nothing else', () => {
  const held = (expert: number) => planned({ ...QWEN3_30B, ...MEGATRON, expert }).memoryGiB;
  const [one, eight, sixteen] = [held(1), held(8), held(16)];
  // 48 blocks of 128 experts of 3 x 2,048 x 768.
  const experts = (48 * 128 * 3 * 2048 * 768 * 2) / 2 ** 30;
  expect(one.parameters - eight.parameters).toBeCloseTo(experts * (7 / 8), 6);
  expect(one.parameters - sixteen.parameters).toBeCloseTo(experts * (15 / 16), 6);
  expect(one.gradients - eight.gradients).toBeCloseTo(2 * experts * (7 / 8), 6);
  // The optimizer's state is divided over all ranks with and without.
  expect([eight.optimizer, sixteen.optimizer]).toEqual([one.optimizer, one.optimizer]);
});

test('without a distributed optimizer its state is divided as the experts are', () => {
  const held = (expert: number) =>
    planned({ ...QWEN3_30B, ...MEGATRON, zeroStage: 0, shard: 1, replicate: 16, expert }).memoryGiB;
  expect(held(16).optimizer / held(1).optimizer).toBeCloseTo(held(16).parameters / held(1).parameters, 6);
});

test('an expert is split over tensor ranks as far as a stage has ranks for whole groups', () => {
  const held = (expert: number, tensor: number) =>
    planned({ ...QWEN3_30B, ...MEGATRON, tensor, shard: 16 / tensor, expert }).memoryGiB.parameters;
  // Sixteen ranks hold an expert group of sixteen, or one of eight whose experts are in two halves each.
  expect(held(16, 2)).toBeCloseTo(held(8, 2), 9);
  expect(held(8, 2)).toBeLessThan(held(4, 2));
});

test('an expert that the run does not split is whole on its rank', () => {
  const held = (changes: Partial<LayoutInput>) =>
    planned({ ...QWEN3_30B, ...MEGATRON, tensor: 4, shard: 4, expert: 4, ...changes }).memoryGiB.parameters;
  const experts = (48 * 128 * 3 * 2048 * 768 * 2) / 2 ** 30;
  expect(held({ expertTensor: 1 }) - held({})).toBeCloseTo((experts / 4) * (3 / 4), 6);
});

test('what is sent of an expert that is not split is whole too', () => {
  const sent = (changes: Partial<LayoutInput>) =>
    shardTraffic(layout({ ...QWEN3_30B, ...MEGATRON, tensor: 4, shard: 4, expert: 4, ...changes })).parameters;
  expect(sent({ expertTensor: 1 }) - sent({})).toBeCloseTo(((128 * 3 * 2048 * 768) / 4) * (3 / 4), 0);
});

test('products of an expert that is not split are wider, and so faster', () => {
  const seconds = (expertTensor: number) =>
    planned({ ...QWEN3_30B, ...MEGATRON, nodes: 4, tensor: 4, shard: 8, expert: 8, expertTensor }).step.matmul;
  expect(seconds(1)).toBeLessThan(seconds(4) * 0.8);
});

test('the ranks of an expert group that is not split are next to each other', () => {
  const slow = (expertTensor: number) => {
    const groups = { ...QWEN3_30B, ...MEGATRON, nodes: 4, tensor: 4, shard: 8, expert: 8, expertTensor };
    return exchange({ ...groups, networkGbps: 400 }) / exchange({ ...groups, networkGbps: 800 });
  };
  expect(slow(1)).toBe(1);
  expect(slow(4)).toBeGreaterThan(1);
});

test('FSDP divides experts over all ranks, whatever the degree of their group', () => {
  const state = (expert: number) => {
    const { parameters, gradients, optimizer } = planned({ ...QWEN3_30B, expert }).memoryGiB;
    return [parameters, gradients, optimizer];
  };
  expect(state(8)).toEqual(state(1));
});

test('GPT-OSS 120B in eight-way expert parallelism fits 64 B200, as NVIDIA ran it', () => {
  const run = {
    ...MEGATRON,
    ...{ model: model('gpt-oss-120b'), accelerator: acceleratorNamed('B200-180GB'), nodes: 8, shard: 64 },
    ...{ sequence: 4096, microBatch: 4, globalBatch: 1280, recompute: 'none' as const, gradientBytes: 2 },
  };
  expect(planned({ ...run, expert: 8 }).fits).not.toBe('oom');
  expect(planned({ ...run, expert: 1 }).fits).toBe('oom');
});

test('only what leaves the node goes over its network', () => {
  const spread = (nodes: number) => ({
    ...QWEN3_30B,
    nodes,
    shard: 8 * nodes,
    expert: 8 * nodes,
    globalBatch: 8 * nodes,
  });
  const slow = (nodes: number) =>
    exchange({ ...spread(nodes), networkGbps: 400 }) / exchange({ ...spread(nodes), networkGbps: 800 });
  expect(slow(1)).toBe(1);
  // Half of the tokens of two nodes leave, three quarters of four.
  expect(slow(2)).toBeGreaterThan(1.9);
  const leaves = exchange({ ...spread(4), networkGbps: 400 }) / exchange({ ...spread(2), networkGbps: 400 });
  expect(leaves).toBeCloseTo(3 / 2, 1);
});

test('a token that is sent once to each node crosses it once, however many of its experts are there', () => {
  const two = { ...QWEN3_30B, expert: 16, networkGbps: 400 };
  const once = exchange({ ...two, sendsOncePerNode: true });
  // Of eight experts half are on the other node, to which a token goes but for one time in 256.
  expect(exchange(two) / once).toBeGreaterThan(3.5);
  expect(exchange(two) / once).toBeLessThan(8 / (2 * (1 - 1 / 256)) + 0.1);
  const inside = { ...QWEN3_30B, nodes: 1, shard: 8, expert: 8 };
  expect(exchange({ ...inside, sendsOncePerNode: true })).toBeGreaterThanOrEqual(exchange(inside));
});

test('exchanges beside another micro-batch take less, however slow the network, and one micro-batch has no other', () => {
  const of = (changes: Partial<LayoutInput>) => exchange({ ...QWEN3_30B, ...MEGATRON, expert: 16, ...changes });
  for (const networkGbps of [3200, 400, 50]) {
    const many = { networkGbps, globalBatch: 256 };
    const hidden = of({ ...many, overlapsExperts: true });
    expect(hidden).toBeLessThan(of(many));
    // What takes longer than the passes beside it remains.
    if (networkGbps === 50) expect(hidden).toBeGreaterThan(of(many) / 2);
    const one = { networkGbps, globalBatch: 16 };
    expect(of({ ...one, overlapsExperts: true })).toBeCloseTo(of(one), 9);
  }
});

test('kernels in CUDA graphs wait for no host', () => {
  const host = (launchesGraphs: boolean) =>
    planned({ ...QWEN3_30B, ...MEGATRON, expert: 8, recompute: 'none', launchesGraphs }).step.host;
  expect(host(false)).toBeGreaterThan(10 * host(true));
});

// Rows that users report: H800 is an H100 whose NVLink has 400 GB/s. The other settings are in the reports.
const H800 = { ...acceleratorNamed('H100-80GB'), nvlinkGBs: 400 };
const TWO_NODES = { ...QWEN3_30B, ...MEGATRON, accelerator: H800, recompute: 'none', sequence: 8192 } as const;
const OF_32_STAGES = {
  ...{ ...MEGATRON, model: model('qwen3-235b-a22b'), accelerator: H800, nodes: 32, sequence: 4096 },
  ...{ pipeline: 32, virtualStages: 3, expert: 8, expertTensor: 1 },
} as const;
test.each<[string, number, Partial<LayoutInput>]>([
  ['alibaba/Pai-Megatron-Patch#643', 6325, { ...TWO_NODES, pipeline: 2, shard: 8, expert: 8, globalBatch: 128 }],
  ['alibaba/Pai-Megatron-Patch#643', 6244, { ...TWO_NODES, pipeline: 4, shard: 4, expert: 4, globalBatch: 256 }],
  ['alibaba/Pai-Megatron-Patch#658', 1541, { ...OF_32_STAGES, shard: 8, microBatch: 4, globalBatch: 4096 }],
  ['alibaba/Pai-Megatron-Patch#658', 1507, { ...OF_32_STAGES, tensor: 2, shard: 4, microBatch: 4, globalBatch: 4096 }],
  [
    'alibaba/Pai-Megatron-Patch#658',
    1462,
    { ...OF_32_STAGES, tensor: 2, shard: 4, recompute: 'none', globalBatch: 2048 },
  ],
  ['alibaba/Pai-Megatron-Patch#658', 1428, { ...OF_32_STAGES, shard: 8, globalBatch: 2048 }],
  [
    'yanring/Megatron-MoE-ModelZoo#21',
    5217,
    { ...QWEN3_30B, ...MEGATRON, nodes: 4, shard: 32, expert: 8, recompute: 'none', globalBatch: 256 },
  ],
])('%s: %i tokens a second and GPU are in the interval', (_, measured, changes) => {
  const [low, high] = planned(changes).interval80;
  expect(low).toBeLessThan(measured);
  expect(high).toBeGreaterThan(measured);
});

test('experts with small matrices compute more slowly than wide ones of the same FLOPs', () => {
  const of = (ffn: number, experts: number, expertsPerToken: number) =>
    planned({ model: { ...layout().model, ffn, experts, expertsPerToken }, nodes: 16, shard: 128, globalBatch: 128 })
      .step.matmul;
  expect(of(1024, 64, 8)).toBeGreaterThan(1.1 * of(8192, 8, 1));
});

/**
 * Seconds of a step of 256 sequences on 8 p6-b300.48xlarge, NCCL's all-to-all
 * (https://github.com/awslabs/awsome-distributed-ai/blob/95b939cd/3.test_cases/megatron/megatron-bridge/qwen3-235b/benchmarks/RESULTS.md).
 */
test('with one sequence in a micro-batch, the GPU waits for the host of Megatron-Core', () => {
  const step = (microBatch: number) =>
    planned({
      ...MEGATRON,
      model: model('qwen3-235b-a22b'),
      accelerator: acceleratorNamed('B300-288GB'),
      nodes: 8,
      networkGbps: 6400,
      shard: 4,
      tensor: 8,
      pipeline: 2,
      expert: 32,
      expertTensor: 1,
      microBatch,
      globalBatch: 256,
      sequence: 4096,
      recompute: 'core',
    }).step;
  expect(Math.abs(step(1).total / 33.36 - 1)).toBeLessThan(0.1);
  expect(step(1).host).toBeGreaterThan(step(1).total / 4);
  expect(step(4).host).toBeLessThan(step(4).total / 10);
});

// As in Nemotron 3 Super: the experts of a block work in a narrower space, between two projections.
test('experts in a quarter of the hidden size exchange a quarter, and compute less', () => {
  const { hidden, ffn, expertsPerToken } = QWEN3_30B.model;
  const plan = (expertHidden?: number) =>
    planned({
      ...{ model: { ...QWEN3_30B.model, ...(expertHidden && { expertHidden }) }, recompute: 'none' },
      ...{ kernels: 'fused', sequence: 4096, nodes: 8, shard: 64, expert: 64, microBatch: 4, globalBatch: 256 },
    }).step;
  const [whole, same, quarter] = [plan(), plan(hidden), plan(hidden / 4)];
  expect(quarter.expertParallel / whole.expertParallel).toBeCloseTo(0.25, 2);
  expect(quarter.elementwise).toBeLessThan(whole.elementwise);
  // Two projections more, then three quarters less of the experts and of the projections.
  const projections = same.matmul - whole.matmul;
  expect(projections).toBeGreaterThan(0);
  const experts = (3 * ffn * expertsPerToken) / (2 * hidden);
  expect((same.matmul - quarter.matmul) / projections).toBeGreaterThan(0.75 * experts);
});
