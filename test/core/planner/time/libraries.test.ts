import { expect, test } from 'vitest';
import type { LayoutInput } from '../../../../lib/core/planner/layout';
import { acceleratorNamed, LLAMA_8B, layout, planOf } from '../../../support/layouts';

const step = (changes: Partial<LayoutInput>) => planOf(layout(changes)).step;

/** GPT of 530 billion parameters on 1,120 A100 at 98 TFLOPS with recomputation (https://arxiv.org/abs/2104.04473, Table 2, equation 3). */
const GPT_530B: Partial<LayoutInput> = {
  model: {
    ...LLAMA_8B,
    layers: 105,
    hidden: 20480,
    heads: 128,
    kvHeads: 128,
    headSize: 160,
    ffn: 81920,
    mlpMatrices: 2,
    vocabulary: 51_200,
    tiedEmbeddings: true,
  },
  accelerator: acceleratorNamed('A100-80GB'),
  nodes: 140,
  networkGbps: 1600,
  shard: 1120,
  microBatch: 2,
  globalBatch: 2240,
  sequence: 2048,
  precision: 'fp16',
  stack: 'deepspeed',
  attention: 'fused',
  prefetchesShards: false,
};
const SECONDS_530B = 180;

test('ZeRO-3 of 2021 waits for the weights of each product and sums gradients in full', () => {
  expect(Math.abs(step(GPT_530B).total / SECONDS_530B - 1)).toBeLessThan(0.08);
  expect(step({ ...GPT_530B, prefetchesShards: true }).total / SECONDS_530B).toBeLessThan(0.85);
});

test('Adam on the host takes half as long where everything is in bf16', () => {
  const pure = step({ offloadOptimizer: true, precision: 'bf16-pure' }).offload;
  const ratio = pure / step({ offloadOptimizer: true }).offload;
  expect(ratio).toBeGreaterThan(0.5);
  expect(ratio).toBeLessThan(0.55);
});
