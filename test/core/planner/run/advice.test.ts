// What a plan says to try first can be written into the run file as it is printed: no rule refuses it, and its plan is what was said.
import { expect, test } from 'vitest';
import { loadRun } from '../../../../lib/core/config/load';
import { planRun } from '../../../../lib/core/planner/run/plan-run';
import { checkRun } from '../../../../lib/core/rules';
import { PLANNABLE } from '../../../support/runs';

const FACTS = { region: 'us-west-2' };
const run = (
  preset: string,
  instanceType: string,
  instanceCount: number,
  parameters: object,
  training: object = {},
) => ({
  ...PLANNABLE,
  data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
  model: { preset },
  training: { ...PLANNABLE.training, globalBatchSize: 256, ...training },
  compute: { instanceType, instanceCount },
  distribution: { library: 'fsdp', parameters },
});
/** A run of Megatron-LM without virtual stages. */
const pipeline = (preset: string, instances: number, parameters: object) => ({
  ...run(
    preset,
    'ml.p5.48xlarge',
    instances,
    {},
    {
      microBatchSize: 1,
      globalBatchSize: 16 * instances,
      activationCheckpointing: 'full',
    },
  ),
  code: { source: 's3://code/src.tar.gz' },
  distribution: { library: 'megatron', parameters: { 'use-distributed-optimizer': true, ...parameters } },
});
const RUNS = [
  run('llama3-8b', 'ml.p5.48xlarge', 2, { shard_degree: 16 }),
  run('llama3-70b', 'ml.p5.48xlarge', 8, { shard_degree: 64 }, { microBatchSize: 2 }),
  run(
    'qwen3-8b',
    'ml.p4d.24xlarge',
    4,
    { shard_degree: 32, tensor_parallel_degree: 1 },
    { activationCheckpointing: 'full' },
  ),
  run('deepseek-v3', 'ml.p6-b200.48xlarge', 32, { shard_degree: 256, expert_parallel_degree: 32 }),
  run(
    'deepseek-v3',
    'ml.p6-b200.48xlarge',
    32,
    { shard_degree: 256, expert_parallel_degree: 64 },
    { activationCheckpointing: 'selective' },
  ),
  run('gpt-oss-120b', 'ml.p5en.48xlarge', 8, { shard_degree: 64, expert_parallel_degree: 64 }),
  run('gpt-oss-120b', 'ml.p5en.48xlarge', 8, { shard_degree: 64 }),
  run('deepseek-v3', 'ml.p5en.48xlarge', 4, { shard_degree: 32 }, { activationCheckpointing: 'full' }),
  run(
    'llama4-scout',
    'ml.p5en.48xlarge',
    16,
    { shard_degree: 128, expert_parallel_degree: 16 },
    { activationCheckpointing: 'selective' },
  ),
  run('deepseek-v3', 'ml.p5en.48xlarge', 32, { shard_degree: 256 }),
  run('llama3-70b', 'ml.p4d.24xlarge', 4, { shard_degree: 32 }),
  run('llama3-8b', 'ml.p4d.24xlarge', 2, { shard_degree: 16 }, { microBatchSize: 16 }),
  run('llama3-70b', 'ml.p4d.24xlarge', 2, { shard_degree: 16, compile: true }),
  run('mixtral-8x7b', 'ml.p5.48xlarge', 2, { shard_degree: 16, expert_parallel_degree: 8 }),
  {
    ...run('llama3-8b', 'ml.p5.48xlarge', 2, { shard_degree: 16 }, { activationCheckpointing: 'full' }),
    code: { source: 'builtin', arguments: { 'recompute-layers': 4 } },
  },
  {
    ...run('qwen3-30b-a3b', 'ml.p5.48xlarge', 2, {}, { microBatchSize: 8 }),
    code: { source: 's3://code/src.tar.gz' },
    distribution: {
      library: 'megatron',
      parameters: { 'use-distributed-optimizer': true, 'expert-model-parallel-size': 16 },
    },
  },
  pipeline('mixtral-8x7b', 8, { 'pipeline-model-parallel-size': 8, 'expert-model-parallel-size': 8 }),
  pipeline('qwen3-235b-a22b', 32, { 'pipeline-model-parallel-size': 8, 'expert-model-parallel-size': 32 }),
  pipeline('deepseek-v3', 128, { 'pipeline-model-parallel-size': 8, 'expert-model-parallel-size': 64 }),
];
const errorsOf = (file: object, sets: string[]) => {
  const { value, issues } = loadRun(JSON.stringify(file), sets);
  if (!value) throw new Error(JSON.stringify(issues));
  return { value, errors: checkRun(value, FACTS).filter(({ level }) => level === 'error') };
};

test.each(RUNS.map((file) => [`${file.model.preset} ${JSON.stringify(file.distribution.parameters)}`, file] as const))(
  '%s',
  (_name, file) => {
    const { value, errors } = errorsOf(file, []);
    expect(errors).toEqual([]);
    const plan = planRun(value, FACTS);
    if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
    for (const { change, tokensPerSecondPerGpu, fits } of plan.advice) {
      const sets = change.split(', ').map((one) => one.replace(': ', '='));
      const options = sets.map((one) => one.split('=')[0]);
      expect(new Set(options).size, change).toBe(options.length);
      const changed = errorsOf(file, sets);
      expect(changed.errors, change).toEqual([]);
      const there = planRun(changed.value, FACTS);
      if (Array.isArray(there)) throw new Error(JSON.stringify(there));
      expect([change, there.fits]).toEqual([change, fits]);
      expect(there.tokensPerSecondPerGpu / tokensPerSecondPerGpu, change).toBeCloseTo(1, 2);
    }
  },
);

test('a mixture that does not fit because each GPU gathers all experts is advised to spread them', () => {
  const file = run('deepseek-v3', 'ml.p5en.48xlarge', 32, { shard_degree: 256 }, { activationCheckpointing: 'full' });
  const plan = planRun(errorsOf(file, []).value, FACTS);
  if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
  expect([plan.fits, plan.advice[0]?.change, plan.advice[0]?.fits]).toEqual([
    'oom',
    'distribution.parameters.expert_parallel_degree: 8',
    'fits',
  ]);
});

test('experts that are spread over nodes are advised to stay inside one', () => {
  const plan = planRun(errorsOf(RUNS[5] ?? {}, []).value, FACTS);
  expect(Array.isArray(plan) ? [] : plan.advice.map(({ change }) => change)).toContain(
    'distribution.parameters.expert_parallel_degree: 8',
  );
});

test('where one change is not enough, the fastest of the smallest combinations comes first', () => {
  const file = run('deepseek-v3', 'ml.p5en.48xlarge', 32, { shard_degree: 256 });
  const plan = planRun(errorsOf(file, []).value, FACTS);
  if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
  const [first, ...others] = plan.advice;
  expect([plan.fits, first?.change, first?.fits]).toEqual([
    'oom',
    'distribution.parameters.expert_parallel_degree: 8, training.activationCheckpointing: full',
    'fits',
  ]);
  for (const other of others) expect(other.stepSeconds).toBeGreaterThanOrEqual(first?.stepSeconds ?? 0);
});

test.each([
  ['mixtral-8x7b', 8, 8, 8, 'num-layers-per-virtual-pipeline-stage: 1'],
  // As NVIDIA's recipes divide 61 layers: NVIDIA/Megatron-LM@d48bd6be, examples/moe_recipes.
  ['deepseek-v3', 128, 8, 64, 'pipeline-model-parallel-layout: Et|(tt|)*30L'],
])(
  'a pipeline of %s without virtual stages is advised to interleave them',
  (preset, instances, stages, experts, change) => {
    const file = pipeline(preset, instances, {
      'pipeline-model-parallel-size': stages,
      'expert-model-parallel-size': experts,
    });
    const plan = planRun(errorsOf(file, []).value, FACTS);
    expect(Array.isArray(plan) ? plan : plan.advice.map((one) => one.change)).toContain(
      `distribution.parameters.${change}`,
    );
  },
);
