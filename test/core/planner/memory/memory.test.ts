import { expect, test } from 'vitest';
import { MEMORY_CONSTANTS } from '../../../../lib/core/planner/constants';
import type { LayoutInput } from '../../../../lib/core/planner/layout';
import { memoryOf } from '../../../../lib/core/planner/memory/memory';
import { stageLayers } from '../../../../lib/core/planner/model-size';
import { layout } from '../../../support/layouts';

const memory = (changes: Partial<LayoutInput> = {}) => memoryOf(layout(changes), MEMORY_CONSTANTS);

test('FSDP that offloads parameters keeps no state on the GPU, DeepSpeed sends gradients where the optimizer is', () => {
  const { parameters, gradients, optimizer } = memory({ offloadParameters: true });
  expect([parameters, gradients, optimizer]).toEqual([0, 0, 0]);
  const deepspeed = memory({ stack: 'deepspeed', offloadOptimizer: true });
  expect([deepspeed.gradients, deepspeed.optimizer]).toEqual([0, 0]);
  expect(deepspeed.parameters).toBeGreaterThan(0);
});

test('the leaner the loss, the fewer bytes a logit takes', () => {
  // Nothing is recomputed, so that the peak is when the loss is taken.
  const perLogit = (['plain', '16-bit', 'chunked', 'fused'] as const).map(
    (loss) => (memory({ loss, recompute: 'none', zeroStage: 2 }).logits * 2 ** 30) / (8192 * 128256),
  );
  expect(perLogit[0]).toBeCloseTo(MEMORY_CONSTANTS.logitBytesTorch, 6);
  expect(perLogit.slice(1)).toEqual([expect.closeTo(4, 9), expect.closeTo(2, 9), 0]);
});

test('THUDM/slime#2253, modelscope/ms-swift#6966: the plain loss of a large vocabulary takes several copies of its logits', () => {
  const model = { ...layout().model, vocabulary: 151_936 };
  const long = { model, sequence: 32_768, microBatch: 1, recompute: 'none', zeroStage: 2 } as const;
  const oneCopy = (32_768 * 151_936 * 4) / 2 ** 30;
  expect(memory({ ...long, loss: 'plain' }).logits).toBeGreaterThan(2.9 * oneCopy);
  expect(memory({ ...long, loss: 'chunked' }).logits).toBeLessThan(oneCopy);
});

test('sequence-parallel inputs that are gathered again take less than those that are kept', () => {
  const split = { tensor: 8, shard: 2, recompute: 'none' } as const;
  const kept = memory({ ...split, gathersInputsAgain: false }).activations;
  const again = memory({ ...split, gathersInputsAgain: true }).activations;
  const inputs = (32 * 8192 * 4 * 4096 * (7 / 8)) / 2 ** 30;
  const { activationEager, keptHoles } = MEMORY_CONSTANTS;
  expect(kept - again).toBeCloseTo(inputs * activationEager * (1 + keptHoles), 1);
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

test('what keeps its size from step to step is wasted less than what comes and goes; kept activations only have holes', () => {
  const { keptHoles, stateWaste, fragmentation } = MEMORY_CONSTANTS;
  expect(stateWaste).toBeLessThan(fragmentation);
  const m = memory();
  const steady = m.parameters + m.gradients + m.optimizer + m.working;
  // Inputs of 32 blocks, and what the stage receives and hands on.
  const kept = ((34 * 8192 * 2 * 4096) / 2 ** 30) * (1 + keptHoles);
  const passing = m.activations - kept + m.logits + m.buffers;
  expect(m.fragmentation).toBeCloseTo(steady * stateWaste + passing * fragmentation, 9);
});

test('the peak of large blocks is the backward pass of one, that of large vocabularies the loss', () => {
  const wide = { ...layout().model, hidden: 16384, ffn: 53248, heads: 128 };
  expect(memory({ model: wide }).logits).toBe(0);
  expect(memory().logits).toBeGreaterThan(0);
});

test('FSDP that takes one micro-batch a step can give the room of its gradients back, DDP cannot', () => {
  const whole = memory().gradients;
  const once = memory({ globalBatch: 16 });
  expect(once.gradients).toBeLessThan(0.1 * whole);
  expect(once.total).toBeCloseTo(memory().total, 9);
  const ddp = { zeroStage: 0, shard: 1, replicate: 16 } as const;
  expect(memory({ ...ddp, globalBatch: 16 })).toEqual(memory(ddp));
});

test('one GPU has no gradients beside its activations unless it accumulates them', () => {
  const alone = { nodes: 1, gpusPerNode: 1, shard: 1, zeroStage: 0, microBatch: 4 } as const;
  expect(memory({ ...alone, globalBatch: 4, recompute: 'none' }).gradients).toBe(0);
  const accumulated = memory({ ...alone, globalBatch: 8, recompute: 'none' }).gradients;
  expect(accumulated).toBeGreaterThan(25);
  // With next to nothing kept, they are all there when the backward pass ends.
  const short = memory({ ...alone, microBatch: 1, globalBatch: 1, sequence: 128 }).gradients;
  expect(short).toBeGreaterThan(0.98 * accumulated);
});

test('no_sync keeps gradients whole and parameters gathered between micro-batches, and the plan counts both', () => {
  const accumulated = memory({ globalBatch: 64, noSync: true });
  const scattered = memory({ globalBatch: 64 });
  const parameters = 8.03e9;
  expect((accumulated.gradients - scattered.gradients) * 2 ** 30).toBeCloseTo(4 * parameters * (15 / 16), -8);
  expect((accumulated.parameters - scattered.parameters) * 2 ** 30).toBeCloseTo(2 * parameters, -8);
  // One micro-batch a step is the last one.
  expect(memory({ globalBatch: 16, noSync: true })).toEqual(memory({ globalBatch: 16 }));
});

test('no_sync gathers parameters when activations are gone, unless they are kept from the forward pass on', () => {
  const late = { noSync: true, recompute: 'none', globalBatch: 64 } as const;
  expect(memory(late).activations).toBeGreaterThan(40);
  expect(memory(late).parameters).toBeLessThan(3);
  const kept = memory({ ...late, keepsGathered: true });
  expect(kept.activations).toBeGreaterThan(40);
  expect((kept.parameters - memory(late).parameters) * 2 ** 30).toBeCloseTo(2 * 8.03e9, -8);
});

test('FSDP that keeps parameters gathered holds them once in 16 bit, beside shards in 32', () => {
  const [resharded, kept] = [memory({ recompute: 'none' }), memory({ recompute: 'none', keepsGathered: true })];
  const gathered = (kept.parameters - resharded.parameters) * 2 ** 30;
  expect(gathered).toBeCloseTo(2 * 8.03e9, -8);
  expect(kept.working).toBeLessThan(resharded.working);
  expect(kept.gradients).toBe(resharded.gradients);
});

test('blocks that are recomputed together keep one input, and need their activations and parameters at once', () => {
  const of = (recomputeLayers: number) => memory({ recompute: 'full', loss: 'fused', recomputeLayers });
  const [one, four] = [of(1), of(4)];
  // Three more blocks of 1.6 GiB, and 24 inputs of 64 MiB fewer.
  expect(four.activations - one.activations).toBeCloseTo(3 * 1.65 - 24 / 16, 0);
  expect((four.working - one.working) * 2 ** 30).toBeCloseTo(2 * 3 * 218e6, -7);
  expect(of(64)).toEqual(of(32));
  expect(memory({ recompute: 'none', recomputeLayers: 4 })).toEqual(memory({ recompute: 'none' }));
});

test('FSDP1 accumulates in 16 bit under no_sync, and does not keep parameters for it', () => {
  const late = { noSync: true, globalBatch: 64 } as const;
  const [fsdp1, fsdp2] = [memory({ ...late, isFsdp1: true }), memory(late)];
  expect(fsdp1.gradients).toBeCloseTo(fsdp2.gradients / 2, 6);
  expect(fsdp1.parameters).toBe(memory({ globalBatch: 64 }).parameters);
});
