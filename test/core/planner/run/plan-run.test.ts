import { expect, test } from 'vitest';
import { resolveRun } from '../../../../lib/core/config/resolve-run';
import type { RunFile } from '../../../../lib/core/config/run-file';
import { layoutOfRun } from '../../../../lib/core/planner/run/layout-of-run';
import { planRun, type RunPlan } from '../../../../lib/core/planner/run/plan-run';
import { searchRun } from '../../../../lib/core/search/search-run';

const FILE: RunFile = {
  name: 'llama',
  model: { preset: 'llama3-8b' },
  training: {
    sequenceLength: 8192,
    microBatchSize: 1,
    globalBatchSize: 512,
    totalTokens: 1e10,
    activationCheckpointing: 'full',
  },
  code: { source: 'builtin' },
  compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4 },
};

const run = (changes: Partial<RunFile> = {}) => resolveRun({ ...FILE, ...changes });

function planOfRun(changes: Partial<RunFile> = {}, prices?: Record<string, number>): RunPlan {
  const plan = planRun(run(changes), { region: 'us-west-2', prices });
  if (Array.isArray(plan)) throw new Error(plan.map((i) => i.message).join('\n'));
  return plan;
}

test('hours, dollars and tokens follow from the step time', () => {
  const plan = planOfRun();
  expect(plan.steps).toBe(Math.ceil(1e10 / (512 * 8192)));
  expect(plan.hours).toBeCloseTo(((plan.steps ?? 0) * plan.stepSeconds) / 3600, 9);
  expect(plan.wallHours).toBeCloseTo((plan.hours ?? 0) / plan.goodput, 9);
  expect(plan.usd.onDemand).toBeCloseTo((plan.wallHours ?? 0) * 4 * 63.296, 6);
  const [low, high] = plan.interval80.usd ?? [0, 0];
  expect(low < (plan.usd.onDemand ?? 0) && (plan.usd.onDemand ?? 0) < high).toBe(true);
});

test("the environment's own rates win, and an unknown price is said to be unknown", () => {
  expect(planOfRun({}, { 'ml.p5.48xlarge': 10 }).usd).toMatchObject({ perHour: 40, basis: 'own' });
  const p5e = planOfRun({ compute: { instanceType: 'ml.p5e.48xlarge', instanceCount: 4 } });
  expect(p5e.usd).toEqual({
    onDemand: null,
    perHour: null,
    basis: null,
    note: 'no price known for ml.p5e.48xlarge in us-west-2',
    spot: { usd: null, perHour: null, note: 'no spot price known for ml.p5e.48xlarge in us-west-2' },
    trainingPlan: { usd: null, perHour: null, note: 'no training plan price known for ml.p5e.48xlarge in us-west-2' },
  });
  expect(p5e.interval80.usd).toBeNull();
});

test('spot and training plans cost what somebody saw them cost, and a price of another region says so', () => {
  const { usd, wallHours } = planOfRun();
  expect(usd.spot).toEqual({
    usd: expect.closeTo((wallHours ?? 0) * 4 * 24.05, 6),
    perHour: 4 * 24.05,
    note: 'spot as billed one night in us-west-2, 2026-09-16',
  });
  expect(usd.trainingPlan.perHour).toBeCloseTo(4 * 45.77, 9);
  expect(usd.trainingPlan.note).toBe('plan offer in us-east-1, 2026-10-04; us-west-2 may differ');
});

test('SMP v1 splits the batch of one call into the microbatches of its pipeline', () => {
  const { layout, microBatches } = planOfRun({
    training: { ...FILE.training, precision: 'fp16', microBatchSize: 16, globalBatchSize: 128 },
    distribution: {
      library: 'smp-v1',
      parameters: { pipeline_parallel_degree: 4, microbatches: 4, shard_optimizer_state: true },
    },
  });
  expect([layout.microBatch, microBatches]).toEqual([4, 4]);
});

test('a plan for several GB200 instances says what it takes for granted of NVLink between them', () => {
  const plan = (instanceCount: number) =>
    planOfRun({ compute: { instanceType: 'ml.p6e-gb200.36xlarge', instanceCount } }).assumptions.join('\n');
  expect(plan(16)).toContain('NVLink joins the GPUs of 16 instances of an UltraServer');
  expect(plan(32)).toContain('NVLink joins the GPUs of 2 instances of an UltraServer');
  expect(plan(1)).not.toContain('UltraServer');
});

test('a run without an end has no hours and no dollars', () => {
  const plan = planOfRun({ training: { ...FILE.training, totalTokens: undefined } });
  expect([plan.steps, plan.tokens, plan.hours, plan.wallHours, plan.usd.onDemand]).toEqual([
    null,
    null,
    null,
    null,
    null,
  ]);
});

test('what the run leaves out is listed as an assumption', () => {
  const plan = planOfRun({ training: { sequenceLength: 4096 } });
  expect(plan.assumptions).toEqual([
    'training.microBatchSize is not given: 1',
    'training.globalBatchSize is not given: 32',
    'the interval is wider because no run of the built-in trainer on several hosts has been measured',
  ]);
});

test.each<[string, Partial<RunFile>, string]>([
  [
    'no model',
    { model: undefined },
    'model: must name a preset, a config or an architecture for a plan, got nothing; add model.preset',
  ],
  [
    'no sequence length',
    { training: {} },
    'training.sequenceLength: must be given for a plan, got nothing; add the tokens of one sequence',
  ],
  [
    'CPU instances',
    { compute: { instanceType: 'ml.c5.xlarge', instanceCount: 2 } },
    'compute.instanceType: must have GPUs for a plan, got ml.c5.xlarge; use a GPU type',
  ],
])('fails: %s', (_name, changes, message) => {
  const plan = planRun(run(changes), { region: 'us-west-2' });
  expect(Array.isArray(plan) && plan.map((i) => i.message)).toEqual([message]);
});

test.each<[string, Partial<RunFile>, Record<string, unknown>]>([
  [
    'fsdp',
    { distribution: { library: 'fsdp', parameters: { shard_degree: 8, tensor_parallel_degree: 2 } } },
    { shard: 8, replicate: 2, tensor: 2, zeroStage: 3, stack: 'fsdp' },
  ],
  ['ddp', { distribution: { library: 'ddp' } }, { shard: 1, replicate: 32, zeroStage: 0 }],
  [
    'deepspeed',
    {
      distribution: {
        library: 'deepspeed',
        parameters: { zero_optimization: { stage: 2, offload_optimizer: { device: 'cpu' } } },
      },
    },
    { shard: 32, replicate: 1, zeroStage: 2, offloadOptimizer: true, stack: 'deepspeed' },
  ],
  [
    'smp-v2 with context ranks among the shards',
    { distribution: { library: 'smp-v2', parameters: { hybrid_shard_degree: 16, context_parallel_degree: 2 } } },
    { shard: 8, replicate: 2, context: 2, zeroStage: 3 },
  ],
  [
    'smp-v1',
    {
      distribution: {
        library: 'smp-v1',
        parameters: { tensor_parallel_degree: 4, pipeline_parallel_degree: 2, shard_optimizer_state: true },
      },
    },
    { tensor: 4, pipeline: 2, shard: 4, zeroStage: 1, stack: 'smp-v1' },
  ],
  [
    'megatron',
    {
      distribution: {
        library: 'megatron',
        parameters: {
          'tensor-model-parallel-size': 4,
          'pipeline-model-parallel-size': 4,
          'num-layers-per-virtual-pipeline-stage': 2,
          'use-distributed-optimizer': true,
        },
      },
    },
    { tensor: 4, pipeline: 4, virtualStages: 4, shard: 2, zeroStage: 1, stack: 'megatron', sendsOncePerNode: false },
  ],
  [
    'megatron with experts over DeepEP',
    {
      model: { preset: 'mixtral-8x7b' },
      distribution: {
        library: 'megatron',
        parameters: { 'expert-model-parallel-size': 8, 'moe-token-dispatcher-type': 'flex' },
      },
    },
    { expert: 8, stack: 'megatron', sendsOncePerNode: true },
  ],
  [
    'megatron that overlaps experts and launches graphs',
    {
      model: { preset: 'mixtral-8x7b' },
      distribution: {
        library: 'megatron',
        parameters: {
          'pipeline-model-parallel-size': 2,
          'expert-model-parallel-size': 8,
          'overlap-moe-expert-parallel-comm': true,
          'cuda-graph-impl': 'transformer_engine',
          'cuda-graph-scope': ['attn', 'moe_router', 'moe_preprocess'],
          'num-virtual-stages-per-pipeline-rank': 4,
        },
      },
    },
    { overlapsExperts: true, launchesGraphs: true, virtualStages: 4 },
  ],
  [
    // NVIDIA-NeMo/Megatron-Bridge@v0.5.0, recipes/nemotronh/nemotron_3_super.py.
    "megatron with further tokens and Transformer Engine's loss",
    {
      training: { ...FILE.training, activationCheckpointing: 'selective' },
      model: { preset: 'mixtral-8x7b' },
      distribution: {
        library: 'megatron',
        parameters: {
          'mtp-num-layers': 2,
          'cross-entropy-loss-fusion': true,
          'cross-entropy-fusion-impl': 'te',
          'recompute-modules': ['layernorm', 'moe_act'],
        },
      },
    },
    { loss: 'in-place', recompute: 'products', model: { layers: 34, mtpLayers: 2 } },
  ],
])('the layout of %s', (_name, changes, expected) => {
  const mapped = layoutOfRun(run(changes));
  if (Array.isArray(mapped)) throw new Error(mapped.map((i) => i.message).join('\n'));
  expect(mapped.layout).toMatchObject(expected);
});

test.each<[string, Record<string, unknown>]>([
  ['none', {}],
  ['of attention alone', { 'cuda-graph-impl': 'local', 'cuda-graph-scope': 'attn' }],
  ['switched off', { 'cuda-graph-impl': 'none' }],
])('the host launches the kernels of experts with graphs that are %s', (_name, parameters) => {
  const mapped = layoutOfRun(
    run({ model: { preset: 'mixtral-8x7b' }, distribution: { library: 'megatron', parameters } }),
  );
  if (Array.isArray(mapped)) throw new Error(mapped.map((i) => i.message).join('\n'));
  expect(mapped.layout.launchesGraphs).toBeUndefined();
});

// Layouts of NVIDIA's recipes: NVIDIA/Megatron-LM@d48bd6be, examples/moe_recipes.
test.each([
  ['Et*4|(tttt|)*14tmL', 4, 4],
  ['Et*3|(tt|)*29m|L', 8, 4],
  ['Et|t|t|tL', 4, 1],
  ['E|(t|)(t|)L', 2, 2],
  ['E(t|)*999999999L', 2, 32],
])('%s in %i stages are %i virtual ones each', (layout, pipeline, virtualStages) => {
  const parameters = { 'pipeline-model-parallel-size': pipeline, 'pipeline-model-parallel-layout': layout };
  const mapped = layoutOfRun(
    run({
      compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 8 },
      distribution: { library: 'megatron', parameters },
    }),
  );
  if (Array.isArray(mapped)) throw new Error(mapped.map((i) => i.message).join('\n'));
  expect(mapped.layout.virtualStages).toBe(virtualStages);
});

test('a run that does not fit is told what to change first, and the change makes it fit', () => {
  const plan = planOfRun({
    model: { preset: 'llama3-70b' },
    training: { sequenceLength: 8192, microBatchSize: 4, globalBatchSize: 128, activationCheckpointing: 'none' },
  });
  expect(plan.fits).toBe('oom');
  expect(plan.advice[0]?.fits).not.toBe('oom');
  expect(plan.advice.every((a) => a.memoryGiB < plan.memoryGiB.total)).toBe(true);
});

test('a checkpoint interval stays between 3 and 60 minutes and goodput below one', () => {
  for (const instanceCount of [1, 4, 64]) {
    const { checkpoint, goodput } = planOfRun({ compute: { instanceType: 'ml.p5.48xlarge', instanceCount } });
    expect(checkpoint.intervalMinutes).toBeGreaterThanOrEqual(3);
    expect(checkpoint.intervalMinutes).toBeLessThanOrEqual(60);
    expect(goodput).toBeGreaterThan(0.9);
    expect(goodput).toBeLessThan(1);
  }
});

test('a search speaks the words of the run file, and each candidate plans as it was found', () => {
  const base = run();
  const result = searchRun(base, { region: 'us-west-2' });
  if (Array.isArray(result)) throw new Error(result.map((i) => i.message).join('\n'));
  expect(result.candidates.length).toBeGreaterThan(3);
  for (const c of result.candidates.slice(0, 5)) {
    const plan = planOfRun({
      training: { ...FILE.training, ...c.training },
      distribution: c.distribution,
      compute: c.compute,
    });
    expect(plan.fits).toBe(c.fits);
    expect(plan.stepSeconds).toBeCloseTo(c.stepSeconds, 6);
  }
});

test('candidates in which the rules find an error are left out', () => {
  const result = searchRun(
    run(),
    { region: 'us-west-2' },
    {
      check: (candidate) =>
        candidate.distribution.parameters.tensor_parallel_degree === 1
          ? []
          : [{ rule: 'test/tensor', level: 'error', path: '', message: 'no tensor parallelism' }],
    },
  );
  if (Array.isArray(result)) throw new Error('no search');
  expect(result.candidates.length).toBeGreaterThan(0);
  expect(result.candidates.every((c) => c.distribution.parameters.tensor_parallel_degree === 1)).toBe(true);
});

/** The sizes of Llama 3 8B, to which parts of other families are added. */
const SIZES = {
  ...{ layers: 32, hiddenSize: 4096, attentionHeads: 32, kvHeads: 8, vocabularySize: 128256, ffnHiddenSize: 14336 },
};

test('capped scores are planned in memory where the image has a PyTorch without a kernel for them', () => {
  const plan = (version: string, more: object) =>
    planOfRun({
      model: { architecture: { ...SIZES, ...more } },
      code: { source: 'builtin' },
      image: { kind: 'dlc', version },
    });
  const capped = { logitSoftcap: { attention: 50 } };
  const [old, now] = [plan('2.8', capped), plan('2.11', capped)];
  expect(old.assumptions.join('\n')).toMatch(/capped scores are planned with all of them in memory: PyTorch 2\.8/);
  expect(now.assumptions.join('\n')).toContain('capped scores and sinks are planned in FlexAttention');
  expect(old.breakdown.attention).toBeGreaterThan(2 * now.breakdown.attention);
  expect(old.memoryGiB.activations).toBeGreaterThan(now.memoryGiB.activations);
  // Sinks are one more key (attend.py).
  expect(plan('2.8', { attentionSinks: true }).breakdown.attention).toBe(
    plan('2.11', { attentionSinks: true }).breakdown.attention,
  );
});

test('capped scores and sinks are planned as FlexAttention in the built-in trainer, and not in own code', () => {
  const attention = (more: object, changes: object = {}) =>
    planOfRun({ model: { architecture: { ...SIZES, ...more } }, ...changes }).breakdown.attention;
  const own = { code: { source: 'src' } };
  const builtin = { code: { source: 'builtin' } };
  for (const more of [{ attentionSinks: true }, { logitSoftcap: { attention: 50 } }]) {
    expect(attention(more, builtin) / attention({}, builtin)).toBeCloseTo(1.6, 6);
    expect(attention(more, own)).toBe(attention({}, own));
    expect(planOfRun({ model: { architecture: { ...SIZES, ...more } }, ...builtin }).assumptions.join('\n')).toContain(
      'capped scores and sinks are planned in FlexAttention',
    );
  }
});
