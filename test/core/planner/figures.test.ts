// What the planner says of one layout of each kind, to five digits. The models of time and memory are fitted to published runs
// (docs/planner.md), which tolerate an error of some per cent: a line that goes wrong by less is noticed here. After a refit:
// UPDATE_FIXTURES=1 npx vitest run --project unit test/core/planner/figures.test.ts, and read the difference.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { LayoutInput } from '../../../lib/core/planner/layout';
import { planRun } from '../../../lib/core/planner/run/plan-run';
import { acceleratorNamed, LLAMA_8B, layout, planOf } from '../../support/layouts';
import { PLANNABLE, runOf } from '../../support/runs';

const FILE = path.join(__dirname, '../../fixtures/planner-figures.json');
const known = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, unknown>;
const isUpdate = process.env.UPDATE_FIXTURES === '1';

const GPT: Partial<LayoutInput['model']> = {
  mlpMatrices: 2,
  kvHeads: 32,
  ffn: 16384,
  vocabulary: 50304,
  tiedEmbeddings: true,
};
const MEGATRON = { stack: 'megatron', kernels: 'fused', zeroStage: 1, gradientBytes: 4, loss: 'plain' } as const;
const EIGHT = { nodes: 8, networkGbps: 3200, globalBatch: 256 };

const LAYOUTS: Readonly<Record<string, Partial<LayoutInput>>> = {
  'FSDP on two nodes': {},
  'FSDP compiled, nothing recomputed': { kernels: 'compiled', recompute: 'none' },
  'FSDP that recomputes half of the products': { recompute: 'op', autocast: true },
  'FSDP that recomputes every second block': { recompute: 'block', loss: '16-bit' },
  'FSDP that recomputes attention': { recompute: 'core', loss: 'chunked', microBatch: 2 },
  'FSDP in pure bf16 with the optimizer in the backward pass': {
    precision: 'bf16-pure',
    optimizerInBackward: true,
    loss: 'fused',
  },
  'FSDP in fp32': { precision: 'fp32' },
  'FSDP without prefetch, of four replicas': { ...EIGHT, shard: 16, replicate: 4, prefetchesShards: false },
  'FSDP that keeps parameters gathered': { keepsGathered: true, noSync: true },
  'FSDP with everything on the host': { offloadOptimizer: true, offloadParameters: true, offloadActivations: true },
  'FSDP of the built-in trainer': {
    isOwnTrainer: true,
    compilesUnlessTensor: true,
    kernels: 'compiled',
    recompute: 'op',
  },
  'FSDP of documents that a mask keeps apart': { isOwnTrainer: true, masksDocuments: true, kernels: 'compiled' },
  'FSDP with capped scores and norms behind': { changesScores: true, normsBehind: true, kernels: 'compiled' },
  'FSDP on a wide tensor axis': { ...EIGHT, tensor: 8, shard: 8, sequenceParallel: true },
  'FSDP with context parallelism': { ...EIGHT, context: 4, shard: 16, sequence: 32_768, globalBatch: 64 },
  'FSDP on ml.p4d by SMDDP': {
    ...EIGHT,
    networkGbps: 400,
    shard: 64,
    accelerator: acceleratorNamed('A100-40GB'),
    collectives: 'smddp',
  },
  'FSDP in fp8': { precision: 'fp8', kernels: 'compiled', accelerator: acceleratorNamed('H200-141GB') },
  'FSDP in fp8 by rows': { precision: 'fp8-rowwise', kernels: 'compiled' },
  'FSDP in fp8 by blocks': { precision: 'fp8-blockwise', kernels: 'compiled' },
  'FSDP in mxfp8 on Blackwell': {
    precision: 'mxfp8',
    kernels: 'compiled',
    accelerator: acceleratorNamed('B200-180GB'),
  },
  'FSDP in nvfp4 on Blackwell': { precision: 'nvfp4', kernels: 'fused', accelerator: acceleratorNamed('B200-180GB') },
  'FSDP of low-rank adapters': { adapters: 20_000_000, recompute: 'op' },
  'FSDP of preferences with a copy': { preferences: 'copy', globalBatch: 32 },
  'FSDP of preferences with adapters': { preferences: 'adapters', adapters: 20_000_000, globalBatch: 32 },
  'FSDP in an UltraServer': { ...EIGHT, domainNodes: 2, shard: 64, accelerator: acceleratorNamed('B200-180GB') },
  'FSDP of misaligned shards': { model: { ...LLAMA_8B, hidden: 4128, ffn: 11_000 }, shard: 16 },
  DDP: { zeroStage: 0, shard: 1, replicate: 16, recompute: 'none' },
  'DeepSpeed ZeRO-2 of a GPT': {
    stack: 'deepspeed',
    zeroStage: 2,
    model: { ...LLAMA_8B, ...GPT },
    precision: 'fp16',
    attention: 'flash1',
  },
  'DeepSpeed ZeRO-3 with Liger': { stack: 'deepspeed', zeroStage: 3, loss: 'fused', offloadOptimizer: true },
  'Megatron with tensor and pipeline': {
    ...EIGHT,
    ...MEGATRON,
    tensor: 4,
    pipeline: 4,
    shard: 4,
    virtualStages: 2,
    recompute: 'core',
  },
  'Megatron that overlaps tensor parallelism': {
    ...EIGHT,
    ...MEGATRON,
    tensor: 8,
    shard: 8,
    overlapsTensor: true,
    gathersInputsAgain: true,
    recompute: 'none',
  },
  'Megatron without sequence parallelism': {
    ...EIGHT,
    ...MEGATRON,
    tensor: 8,
    shard: 8,
    sequenceParallel: false,
    gathersLogits: true,
  },
  'Megatron of 2021': {
    ...EIGHT,
    stack: 'megatron-legacy',
    kernels: 'fused',
    attention: 'fused',
    zeroStage: 0,
    shard: 1,
    replicate: 2,
    tensor: 8,
    pipeline: 4,
    model: { ...LLAMA_8B, ...GPT },
    sequence: 2048,
    gradientBytes: 6,
    precision: 'fp16',
    accelerator: acceleratorNamed('A100-80GB'),
    networkGbps: 1600,
  },
  'plain attention of a GPT': {
    stack: 'megatron-legacy',
    kernels: 'eager',
    attention: 'unfused',
    model: { ...LLAMA_8B, ...GPT },
    sequence: 2048,
    zeroStage: 1,
  },
  nanotron: { ...EIGHT, stack: 'nanotron', zeroStage: 1, tensor: 2, pipeline: 2, shard: 16 },
  JAX: { ...EIGHT, stack: 'jax', kernels: 'compiled', shard: 64 },
  'SMP v1': { ...EIGHT, stack: 'smp-v1', zeroStage: 1, tensor: 4, pipeline: 2, shard: 8 },
};

const RUNS: Readonly<Record<string, object>> = {
  'a run of Llama 3 8B': {},
  'a run of Mixtral over its experts': {
    model: { preset: 'mixtral-8x7b' },
    distribution: { library: 'fsdp', parameters: { shard_degree: 16, expert_parallel_degree: 8 } },
  },
  'a run of DeepSeek-V3': {
    model: { preset: 'deepseek-v3' },
    compute: { instanceType: 'ml.p6-b200.48xlarge', instanceCount: 32 },
    training: { ...PLANNABLE.training, globalBatchSize: 512 },
    distribution: { library: 'fsdp', parameters: { shard_degree: 256, expert_parallel_degree: 32 } },
  },
  'a run of gpt-oss': {
    model: { preset: 'gpt-oss-120b' },
    compute: { instanceType: 'ml.p5en.48xlarge', instanceCount: 8 },
    distribution: { library: 'fsdp', parameters: { shard_degree: 64, expert_parallel_degree: 64 } },
  },
  'a run of adapters': { training: { ...PLANNABLE.training, objective: 'sft', lora: { rank: 16 } } },
  'a run of preferences': { training: { ...PLANNABLE.training, objective: 'dpo', globalBatchSize: 32 } },
  'a run on spot with spare hosts': {
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4, spareInstances: 1 },
    training: { ...PLANNABLE.training, steps: 200_000 },
  },
  'a run that is known by its tokens': {
    training: {
      sequenceLength: 4096,
      microBatchSize: 2,
      globalBatchSize: 512,
      totalTokens: 1e11,
      activationCheckpointing: 'full',
    },
    compute: { instanceType: 'ml.p4d.24xlarge', instanceCount: 8 },
  },
};

/** Five digits: the last ones of a double differ between processors. */
const rounded = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, v) => (typeof v === 'number' ? Number(v.toPrecision(5)) : v)));

function figuresOfRun(more: object) {
  const plan = planRun(runOf({ ...PLANNABLE, data: [{ channel: 'train', s3: 's3://{dataBucket}/t/' }], ...more }), {
    region: 'us-west-2',
  });
  if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
  const { usd: _prices, layout: _input, ...figures } = plan as typeof plan & { layout?: unknown };
  const { usd: _bounds, ...interval80 } = figures.interval80;
  return { ...figures, interval80 };
}

const figures: Record<string, unknown> = {};
const cases: [string, () => unknown][] = [
  ...Object.entries(LAYOUTS).map(([name, changes]): [string, () => unknown] => [name, () => planOf(layout(changes))]),
  ...Object.entries(RUNS).map(([name, more]): [string, () => unknown] => [name, () => figuresOfRun(more)]),
];

test.each(cases)('%s', (name, plan) => {
  figures[name] = rounded(plan());
  if (!isUpdate) expect(figures[name]).toEqual(known[name]);
});

test('no figures are kept of what is not planned here any more', () => {
  const lines = cases.map(([name]) => `${JSON.stringify(name)}: ${JSON.stringify(figures[name])}`);
  if (isUpdate) writeFileSync(FILE, `{\n${lines.join(',\n')}\n}\n`);
  else expect(Object.keys(known)).toEqual(cases.map(([name]) => name));
});
