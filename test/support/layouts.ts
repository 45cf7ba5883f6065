import fc from 'fast-check';
import { ACCELERATOR_NAMES, findAccelerator } from '../../bench/accelerators';
import type { Accelerator } from '../../lib/core/catalog/instances/instances';
import type { ParameterShape } from '../../lib/core/catalog/model/parameters';
import type { AttentionKernel, Kernels, LayoutInput, Recompute, Stack } from '../../lib/core/planner/layout';
import { type LayoutPlan, planLayout } from '../../lib/core/planner/plan';

export function acceleratorNamed(name: string): Accelerator {
  const found = findAccelerator(name);
  if (!found) throw new Error(`no accelerator ${name}; the catalog has ${ACCELERATOR_NAMES.join(', ')}`);
  return found.accelerator;
}

export const LLAMA_8B: ParameterShape = {
  layers: 32,
  hidden: 4096,
  heads: 32,
  kvHeads: 8,
  headSize: 128,
  ffn: 14336,
  mlpMatrices: 3,
  vocabulary: 128256,
  tiedEmbeddings: false,
  experts: 1,
  expertsPerToken: 1,
};

/** A plain FSDP layout of an 8B model on two H100 nodes; each test changes what it is about. */
export function layout(changes: Partial<LayoutInput> = {}): LayoutInput {
  return {
    model: LLAMA_8B,
    accelerator: acceleratorNamed('H100-80GB'),
    nodes: 2,
    gpusPerNode: 8,
    networkGbps: 3200,
    shard: 16,
    replicate: 1,
    tensor: 1,
    pipeline: 1,
    virtualStages: 1,
    context: 1,
    expert: 1,
    zeroStage: 3,
    microBatch: 1,
    globalBatch: 64,
    sequence: 8192,
    precision: 'bf16',
    recompute: 'full',
    sequenceParallel: true,
    offloadOptimizer: false,
    offloadParameters: false,
    offloadActivations: false,
    stack: 'fsdp',
    kernels: 'eager',
    attention: 'flash',
    loss: 'plain',
    autocast: false,
    gathersLogits: false,
    gathersInputsAgain: false,
    overlapsTensor: false,
    prefetchesShards: true,
    collectives: 'nccl',
    optimizerBytes: 8,
    gradientBytes: 2,
    optimizerInBackward: false,
    ...changes,
  };
}

/** The plan of a layout that can run. */
export function planOf(l: LayoutInput): LayoutPlan {
  const plan = planLayout(l);
  if (typeof plan === 'string') throw new Error(plan);
  return plan;
}

const power = (low: number, high: number) => fc.integer({ min: low, max: high }).map((n) => 2 ** n);

const models: fc.Arbitrary<ParameterShape> = fc
  .record({
    layers: fc.integer({ min: 2, max: 24 }).map((n) => 4 * n),
    heads: power(3, 6),
    groups: power(0, 2),
    ratio: fc.constantFrom(2.6875, 3.5, 4),
    gated: fc.boolean(),
    vocabulary: fc.constantFrom(32000, 50304, 128256),
    tiedEmbeddings: fc.boolean(),
  })
  .map(({ heads, groups, ratio, gated, ...rest }) => ({
    ...rest,
    hidden: heads * 128,
    heads,
    kvHeads: heads / groups,
    headSize: 128,
    ffn: Math.round((heads * 128 * ratio) / 256) * 256,
    mlpMatrices: gated ? 3 : 2,
    experts: 1,
    expertsPerToken: 1,
  }));

const software = fc.record({
  stack: fc.constantFrom<Stack>('fsdp', 'deepspeed', 'megatron', 'megatron-legacy', 'nanotron', 'jax'),
  kernels: fc.constantFrom<Kernels>('eager', 'compiled', 'fused'),
  attention: fc.constantFrom<AttentionKernel>('flash', 'flash1', 'fused', 'unfused'),
  recompute: fc.constantFrom<Recompute>('none', 'full', 'block', 'op', 'products', 'core'),
  zeroStage: fc.constantFrom<0 | 1 | 2 | 3>(0, 1, 2, 3),
  precision: fc.constantFrom('bf16', 'fp16', 'fp8'),
  sequenceParallel: fc.boolean(),
  overlapsTensor: fc.boolean(),
  loss: fc.constantFrom<LayoutInput['loss']>('plain', '16-bit', 'chunked', 'fused'),
  offloadOptimizer: fc.boolean(),
  keepsGathered: fc.boolean(),
  noSync: fc.boolean(),
  gradientBytes: fc.constantFrom(2, 4, 6),
});

/** Layouts that can run, of every library, on two or more nodes; the global batch leaves room to double the nodes. */
export const layouts: fc.Arbitrary<LayoutInput> = fc
  .record({
    model: models,
    software,
    gpu: fc.constantFrom('A100-40GB', 'A100-80GB', 'H100-80GB', 'H200-141GB', 'B200-180GB'),
    nodes: power(1, 6),
    networkGbps: fc.constantFrom(400, 800, 1600, 3200),
    tensor: power(0, 3),
    pipeline: power(0, 2),
    context: power(0, 1),
    replicates: fc.boolean(),
    microBatch: power(0, 3),
    accumulate: power(2, 5),
    sequence: power(11, 14),
  })
  .map(({ software: s, gpu, nodes, tensor, pipeline, context, replicates, microBatch, accumulate, ...rest }) => {
    const ranks = (nodes * 8) / (tensor * pipeline * context);
    const usable = ranks >= 2 ? { tensor, pipeline, context } : { tensor: 1, pipeline: 1, context: 1 };
    const own = (nodes * 8) / (usable.tensor * usable.pipeline * usable.context);
    const replicate = s.zeroStage === 0 ? own : replicates && own % 2 === 0 ? 2 : 1;
    return layout({
      ...rest,
      ...s,
      ...(s.stack !== 'fsdp' && { keepsGathered: false, noSync: false }),
      ...usable,
      accelerator: acceleratorNamed(gpu),
      nodes,
      shard: own / replicate,
      replicate,
      microBatch,
      globalBatch: microBatch * own * accumulate,
    } as Partial<LayoutInput>);
  });
