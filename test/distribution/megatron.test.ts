import { expect, test } from 'vitest';
import { BASE, issuesOf } from '../support/runs';

const megatron = (parameters: object, training: object = {}) => ({
  ...BASE,
  training,
  distribution: { library: 'megatron', parameters },
});
const PP4 = { 'pipeline-model-parallel-size': 4 };
const TP8 = { 'tensor-model-parallel-size': 8 };

test.each([
  [{ ...PP4, 'num-layers': 30 }, 'megatron/divisibility', 'num-layers'],
  [{ ...TP8, 'num-attention-heads': 20 }, 'megatron/divisibility', 'num-attention-heads'],
  [{ 'expert-model-parallel-size': 16, 'num-experts': 8 }, 'megatron/divisibility', 'num-experts'],
  // Each expert is split over the ranks of a tensor-parallel group where nothing else is said: 8 x 8 ranks, of which there are 16.
  [
    { ...TP8, 'expert-model-parallel-size': 8, 'sequence-parallel': true },
    'megatron/degrees',
    'expert-model-parallel-size',
  ],
  [{ 'expert-tensor-parallel-size': 3 }, 'megatron/degrees', 'expert-tensor-parallel-size'],
  [{ ...TP8, 'expert-model-parallel-size': 2 }, 'megatron/expert-sequence', 'sequence-parallel'],
  [{ 'context-parallel-size': 4, 'seq-length': 4100 }, 'megatron/divisibility', 'seq-length'],
  [{ '--global-batch-size': 10, '--micro-batch-size': 4 }, 'megatron/batch', '--global-batch-size'],
  [{ 'tensor-model-parallel-size': 16 }, 'megatron/tensor-within-node', 'tensor-model-parallel-size'],
])('fails: %j', (parameters, rule, key) => {
  expect(issuesOf(megatron(parameters), 'megatron/')).toMatchObject([{ rule, path: `distribution.parameters.${key}` }]);
});

test('fails: a flag that says something else than `training`', () => {
  const file = megatron({ 'seq-length': 2048, fp16: true }, { sequenceLength: 4096, precision: 'bf16' });
  expect(issuesOf(file, 'megatron/conflict').map((i) => i.path)).toEqual([
    'distribution.parameters.seq-length',
    'distribution.parameters.fp16',
  ]);
});

test.each(['fp8', 'mxfp8', 'nvfp4'])('products in %s stand in a model in bf16, and not in fp16', (precision) => {
  expect(issuesOf(megatron({ bf16: true }, { precision }), 'megatron/conflict')).toEqual([]);
  expect(issuesOf(megatron({ fp16: true }, { precision }), 'megatron/conflict')).toHaveLength(1);
});

test('experts that are not split need no ranks of the tensor-parallel group', () => {
  const parameters = {
    ...TP8,
    expert_model_parallel_size: 16,
    expert_tensor_parallel_size: 1,
    sequence_parallel: true,
  };
  expect(issuesOf(megatron(parameters), 'megatron/')).toEqual([]);
});

test('flags that fit say nothing, however they are spelled', () => {
  const parameters = {
    ...TP8,
    '--num-layers': 32,
    num_attention_heads: 32,
    'global-batch-size': 8,
    'micro-batch-size': 2,
  };
  expect(issuesOf(megatron(parameters), 'megatron/')).toEqual([]);
});
