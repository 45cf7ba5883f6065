import { describe, expect, test } from 'vitest';
import type { LayoutInput, PlanPrecision } from '../../../../lib/core/planner/layout';
import { acceleratorNamed, layout, planOf } from '../../../support/layouts';

const speed = (precision: PlanPrecision, changes: Partial<LayoutInput>) => planOf(layout({ ...changes, precision }));

/** Gain over bf16, and how far the interval of the recipe leaves it open, in ln. */
function gain(precision: PlanPrecision, changes: Partial<LayoutInput>) {
  const plan = speed(precision, changes);
  return {
    times: plan.tokensPerSecondPerGpu / speed('bf16', changes).tokensPerSecondPerGpu,
    open: Math.log(plan.interval80[1] / plan.tokensPerSecondPerGpu),
  };
}

/** torchao: 8 B200, batch 1, 8,192 tokens, per-operation checkpointing, compiled (mx_formats/README.md, 2026-11-23). */
const TORCHAO: Partial<LayoutInput> = {
  accelerator: acceleratorNamed('B200-180GB'),
  nodes: 1,
  shard: 8,
  globalBatch: 8,
  recompute: 'op',
  kernels: 'compiled',
  loss: '16-bit',
};
/** Megatron Bridge: one GB300, batch 4, 4,096 tokens, 28 of 32 layers in FP4 (https://build.nvidia.com/station/nvfp4-pretraining, 2026-11-23). */
const STATION: Partial<LayoutInput> = {
  accelerator: acceleratorNamed('B300-288GB'),
  nodes: 1,
  gpusPerNode: 1,
  shard: 1,
  zeroStage: 1,
  microBatch: 4,
  globalBatch: 64,
  sequence: 4096,
  recompute: 'none',
  stack: 'megatron',
  kernels: 'fused',
};

describe('published gains over bf16 lie within the interval', () => {
  test.each<[PlanPrecision, number, Partial<LayoutInput>]>([
    ['fp8', 1.254, TORCHAO],
    ['mxfp8', 1.2, TORCHAO],
    ['fp8-rowwise', 1.04, TORCHAO],
    ['nvfp4', 1.68, STATION],
  ])('%s: %d times as fast', (precision, published, changes) => {
    const { times, open } = gain(precision, changes);
    expect(Math.abs(Math.log(times / published))).toBeLessThan(open);
    expect(times).toBeGreaterThan(1);
  });
});

test('recipes follow in the order that torchao measures, and NVFP4 is the fastest', () => {
  const order: PlanPrecision[] = ['bf16', 'fp8-rowwise', 'mxfp8', 'fp8', 'nvfp4'];
  const speeds = order.map((precision) => speed(precision, TORCHAO).tokensPerSecondPerGpu);
  expect(speeds).toEqual([...speeds].sort((a, b) => a - b));
});

test('the less is measured, the wider the interval', () => {
  const open = (precision: PlanPrecision) => gain(precision, TORCHAO).open;
  expect(open('nvfp4')).toBeGreaterThan(open('fp8-blockwise'));
  expect(open('fp8-blockwise')).toBeGreaterThan(open('mxfp8'));
  expect(open('mxfp8')).toBeGreaterThan(open('fp8') + 0.05);
});
