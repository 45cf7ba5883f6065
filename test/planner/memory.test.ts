import { expect, test } from 'vitest';
import type { LayoutInput } from '../../lib/planner/layout';
import { memoryOf } from '../../lib/planner/memory';
import { MEMORY_CONSTANTS } from '../../lib/planner/memory-constants';
import { stageLayers } from '../../lib/planner/stages';
import { layout } from '../support/layouts';

const memory = (changes: Partial<LayoutInput> = {}) => memoryOf(layout(changes), MEMORY_CONSTANTS);

test('FSDP that offloads parameters keeps no state on the GPU, DeepSpeed sends gradients where the optimizer is', () => {
  const { parameters, gradients, optimizer } = memory({ offloadParameters: true });
  expect([parameters, gradients, optimizer]).toEqual([0, 0, 0]);
  const deepspeed = memory({ stack: 'deepspeed', offloadOptimizer: true });
  expect([deepspeed.gradients, deepspeed.optimizer]).toEqual([0, 0]);
  expect(deepspeed.parameters).toBeGreaterThan(0);
});

test('the leaner the loss, the fewer bytes a logit takes', () => {
  const perLogit = (['plain', '16-bit', 'chunked', 'fused'] as const).map(
    (loss) => (memory({ loss }).logits * 2 ** 30) / (8192 * 128256),
  );
  expect(perLogit[0]).toBeCloseTo(MEMORY_CONSTANTS.logitBytesTorch, 6);
  expect(perLogit.slice(1)).toEqual([expect.closeTo(4, 9), expect.closeTo(2, 9), 0]);
});

test('sequence-parallel inputs that are gathered again take less than those that are kept', () => {
  const split = { tensor: 8, shard: 2, recompute: 'none' } as const;
  const kept = memory({ ...split, gathersInputsAgain: false }).activations;
  const again = memory({ ...split, gathersInputsAgain: true }).activations;
  const inputs = (32 * 8192 * 4 * 4096 * (7 / 8)) / 2 ** 30;
  expect(kept - again).toBeCloseTo(inputs * MEMORY_CONSTANTS.activationEager, 1);
});

test('per-operation checkpointing keeps more than block inputs and less than everything', () => {
  const of = (recompute: LayoutInput['recompute']) => memory({ recompute, loss: 'fused' }).activations;
  expect(of('op')).toBeGreaterThan(2 * of('full'));
  expect(of('op')).toBeLessThan(of('none') / 2);
});

test('the score matrix of older kernels comes on top of the logits while its block is recomputed', () => {
  const scores = (8192 * 8192 * 32 * 10) / 2 ** 30;
  expect(memory({ attention: 'unfused' }).activations - memory().activations).toBeCloseTo(scores, 6);
});

test('nanotron counts the head among the blocks of the last pipeline stage, others share blocks evenly', () => {
  const staged = { pipeline: 2, shard: 8, zeroStage: 1 } as const;
  expect(stageLayers(layout({ ...staged, stack: 'megatron' }))).toEqual({ most: 16, last: 16 });
  // The head of 128,256 x 4,096 weighs as much as 2.4 blocks.
  expect(stageLayers(layout({ ...staged, stack: 'nanotron' }))).toEqual({ most: 17, last: 15 });
});

test('what keeps its size from step to step is wasted less than what comes and goes', () => {
  const { stateWaste, fragmentation } = MEMORY_CONSTANTS;
  expect(stateWaste).toBeLessThan(fragmentation);
  const m = memory();
  const steady = m.parameters + m.gradients + m.optimizer + m.working;
  const passing = m.activations + m.logits + m.buffers;
  expect(m.fragmentation).toBeCloseTo(steady * stateWaste + passing * fragmentation, 9);
});
