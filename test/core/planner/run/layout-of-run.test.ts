import { describe, expect, test } from 'vitest';
import { isOneType, planNeeds } from '../../../../lib/core/planner/deadline/by-date';
import type { LayoutInput } from '../../../../lib/core/planner/layout';
import { layoutOfRun } from '../../../../lib/core/planner/run/layout-of-run';
import { planRun } from '../../../../lib/core/planner/run/plan-run';
import { PLANNABLE, runOf } from '../../../support/runs';

const P5 = 'ml.p5.48xlarge';
const run = (changes: object = {}) =>
  runOf({ ...PLANNABLE, data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }], ...changes });
const own = (library: string, parameters: object = {}, more: object = {}) =>
  run({ code: { source: './src' }, distribution: { library, parameters }, ...more });
const issues = (changes: object) => {
  const found = layoutOfRun(run(changes));
  return Array.isArray(found) ? found.map(({ message }) => message) : [];
};
function found(of: ReturnType<typeof run>) {
  const known = layoutOfRun(of);
  if (Array.isArray(known)) throw new Error(JSON.stringify(known));
  return known;
}
const layout = (of: ReturnType<typeof run>): LayoutInput => found(of).layout;
const group = (name: string, instanceType: string) => ({ name, instanceType, instanceCount: 1 });

describe('a run that cannot be planned says why', () => {
  test('a processing run has no model that could be added', () => {
    const processing = { ...run(), kind: 'processing' as const, model: undefined };
    expect(layoutOfRun(processing)).toMatchObject([
      {
        path: 'kind',
        message: 'kind: must be training for a plan, got processing; check a processing run with slipway preflight',
      },
    ]);
  });

  test.each<[object, string]>([
    [
      { model: undefined, code: { source: './src' } },
      'model: must name a preset, a config or an architecture for a plan',
    ],
    [{ training: { microBatchSize: 1, globalBatchSize: 64 } }, 'training.sequenceLength: must be given for a plan'],
    [
      { compute: { instanceType: 'ml.m5.xlarge' } },
      'compute.instanceType: must have GPUs for a plan, got ml.m5.xlarge',
    ],
    [
      { compute: { instanceType: 'ml.unheardof.large' } },
      'compute.instanceType: must have GPUs for a plan, got ml.unheardof',
    ],
    [
      { compute: { instanceType: 'ml.trn1.32xlarge' } },
      'must have GPUs for a plan of speed and cost: no measured step of a NeuronCore is known here, got ml.trn1.32xlarge',
    ],
    [
      { compute: { instanceGroups: [group('a', P5), group('b', 'ml.m5.xlarge')] } },
      `got ${P5}, ml.m5.xlarge; use a GPU type`,
    ],
    [
      { compute: { instanceGroups: [group('a', P5), group('b', 'ml.p4d.24xlarge')] } },
      'must be of one accelerator model for a plan',
    ],
    [
      { distribution: { library: 'fsdp', parameters: { tensor_parallel_degree: 3 } } },
      'distribution.parameters: must divide the world size',
    ],
  ])('%o', (changes, message) => {
    expect(issues(changes)).toEqual([expect.stringContaining(message)]);
  });
});

describe('which state is sharded', () => {
  test.each<[string, object, number, object?]>([
    ['fsdp', {}, 3],
    ['fsdp', { reshard_after_forward: false }, 3],
    ['fsdp', {}, 0, { compute: { instanceType: 'ml.p5.4xlarge', instanceCount: 1 } }],
    ['ddp', {}, 0],
    ['deepspeed', {}, 0],
    ['deepspeed', { zero_optimization: { stage: 1 } }, 1],
    ['deepspeed', { zero_optimization: { stage: 2 } }, 2],
    ['deepspeed', { zero_optimization: { stage: 3 } }, 3],
    ['deepspeed', { zero_optimization: 3 }, 0],
    ['megatron', {}, 0],
    ['megatron', { 'use-distributed-optimizer': true }, 1],
    ['megatron', { use_distributed_optimizer: true }, 1],
    ['smp-v1', { partitions: 2 }, 0],
    ['smp-v1', { partitions: 2, shard_optimizer_state: true }, 1],
    ['smp-v1', { sharded_data_parallel_degree: 16 }, 3],
  ])('%s with %j: %i', (library, parameters, stage, more) => {
    const { zeroStage, shard, replicate } = layout(own(library, parameters, more));
    expect(zeroStage).toBe(stage);
    if (stage === 0) expect(shard).toBe(1);
    else expect(shard * replicate).toBeGreaterThan(1);
  });
});

test('batches that are not given are one sequence a rank, and the plan says so', () => {
  const { microBatch, globalBatch } = layout(run({ training: { sequenceLength: 8192, steps: 10 } }));
  expect([microBatch, globalBatch]).toEqual([1, 16]);
  expect(found(run({ training: { sequenceLength: 8192, steps: 10 } })).assumptions).toEqual(
    expect.arrayContaining(['training.microBatchSize is not given: 1', 'training.globalBatchSize is not given: 16']),
  );
  expect(found(run()).assumptions.join()).not.toContain('is not given');
});

describe('the software of a run', () => {
  test('recomputes selectively what its library can', () => {
    const mode = (activationCheckpointing: string, library: string) =>
      layout(own(library, {}, { training: { ...PLANNABLE.training, activationCheckpointing } })).recompute;
    expect(['none', 'selective', 'full'].map((setting) => mode(setting, 'fsdp'))).toEqual(['none', 'op', 'full']);
    expect(mode('selective', 'megatron')).toBe('core');
  });

  test.each<[string, object, Partial<LayoutInput>]>([
    ['megatron', {}, { gradientBytes: 4, sequenceParallel: false }],
    [
      'megatron',
      { 'grad-reduce-in-bf16': true, 'sequence-parallel': true },
      { gradientBytes: 2, sequenceParallel: true },
    ],
    ['megatron', { grad_reduce_in_bf16: true }, { gradientBytes: 2 }],
    ['fsdp', {}, { sequenceParallel: true, noSync: false, isOwnTrainer: false }],
    ['fsdp', { no_sync: true }, { noSync: true }],
    ['fsdp', { reshard_after_forward: false }, { keepsGathered: true }],
    ['deepspeed', { no_sync: true }, { noSync: false, offloadOptimizer: false, offloadParameters: false }],
    [
      'deepspeed',
      { zero_optimization: { stage: 3, offload_optimizer: { device: 'cpu' } } },
      { offloadOptimizer: true, offloadParameters: false },
    ],
    [
      'deepspeed',
      { zero_optimization: { stage: 3, offload_param: { device: 'nvme' } } },
      { offloadOptimizer: false, offloadParameters: true },
    ],
    ['deepspeed', { zero_optimization: { stage: 3, offload_param: { device: 'none' } } }, { offloadParameters: false }],
  ])('%s with %j', (library, parameters, wanted) => {
    expect(layout(own(library, parameters))).toMatchObject(wanted);
  });

  test('keeps parameters gathered under FSDP only', () => {
    expect(layout(own('deepspeed', { reshard_after_forward: false })).keepsGathered).toBeUndefined();
  });

  test.each([
    ['fsdp', {}, undefined],
    ['fsdp', { backend: 'fsdp1' }, true],
    ['ddp', { backend: 'fsdp1' }, true],
  ])('%s with arguments %j is FSDP1: %s', (library, words, isFsdp1) => {
    const given = run({ code: { source: 'builtin', arguments: words }, distribution: { library } });
    expect(layout(given).isFsdp1).toBe(isFsdp1);
  });

  test('is our own under FSDP, and casts to the recipe that is written', () => {
    expect(layout(run()).isOwnTrainer).toBe(true);
    const precision = (training: object) => layout(run({ training: { ...PLANNABLE.training, ...training } })).precision;
    expect([
      precision({}),
      precision({ precision: 'fp8' }),
      precision({ precision: 'fp8', fp8Recipe: 'tensorwise' }),
      precision({ precision: 'fp8', fp8Recipe: 'rowwise' }),
    ]).toEqual(['bf16', 'fp8', 'fp8', 'fp8-rowwise']);
  });
});

test('interleaved stages are the layers of a stage by those of a chunk', () => {
  const stages = (parameters: object) =>
    layout(own('megatron', { 'pipeline-model-parallel-size': 4, ...parameters })).virtualStages;
  expect(stages({})).toBe(1);
  expect(stages({ 'num-layers-per-virtual-pipeline-stage': 2 })).toBe(4);
  expect(stages({ num_layers_per_virtual_pipeline_stage: 8 })).toBe(1);
  expect(layout(own('megatron', { 'num-layers-per-virtual-pipeline-stage': 2 })).virtualStages).toBe(1);
});

test('what is taken for granted of an UltraServer is said where the run spans instances', () => {
  const ultra = (instanceCount: number) =>
    found(run({ compute: { instanceType: 'ml.p6e-gb200.36xlarge', instanceCount } })).assumptions.join();
  expect(ultra(4)).toContain('instances of an UltraServer');
  expect(ultra(1)).not.toContain('UltraServer');
});

describe('what a run needs of a training plan', () => {
  const needs = (changes: object = {}) => {
    const plan = planRun(run(changes), { region: 'us-west-2' });
    if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
    return { plan, needs: planNeeds(run(changes), plan) };
  };

  test('is all of its hosts, spare ones too, and a tenth more than it takes nine times of ten', () => {
    const { plan, needs: wanted } = needs({ compute: { instanceType: P5, instanceCount: 2, spareInstances: 1 } });
    expect(wanted).toEqual({ instanceType: P5, instances: 3, hours: (plan.interval80.hours?.[1] ?? 0) * 1.1 });
    const groups = { instanceGroups: [group('a', P5), group('b', P5)] };
    expect(needs({ compute: groups }).needs).toMatchObject({ instances: 2 });
    expect([isOneType(run()), isOneType(run({ compute: groups }))]).toEqual([true, false]);
  });

  test('fails: nobody knows without a length', () => {
    const { needs: wanted } = needs({ training: { ...PLANNABLE.training, steps: undefined } });
    expect(wanted).toMatchObject([{ rule: 'plan/length', path: 'training' }]);
  });
});
