import { expect, test } from 'vitest';
import { planRun, type RunPlan } from '../../../../lib/core/planner/run/plan-run';
import { runOf } from '../../../support/runs';

const TARGETS = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'];
const LORA = { lora: { rank: 16, alpha: 32, targets: TARGETS }, activationCheckpointing: 'full' };
const COMPILED = { library: 'fsdp', parameters: { compile: true } };

interface Published {
  model: object;
  /** @default - the built-in trainer */
  code?: object;
  training?: object;
  distribution?: object;
  instances?: number;
  instanceType?: string;
}

/** The plan of a published run that is written as a run file. */
function planned({
  model,
  code,
  training,
  distribution,
  instances = 1,
  instanceType = 'ml.p5.48xlarge',
}: Published): RunPlan {
  const usual = { sequenceLength: 4096, microBatchSize: 2, globalBatchSize: 32, steps: 10 };
  const file = {
    name: 'published',
    code: code ?? { source: 'builtin' },
    model,
    training: { ...usual, activationCheckpointing: 'full', ...training },
    compute: { instanceType, instanceCount: instances },
    distribution: distribution ?? { library: 'fsdp' },
    data: [{ channel: 'train', s3: 's3://bucket/tokens/' }],
  };
  const plan = planRun(runOf(file), { region: 'us-west-2' });
  if (Array.isArray(plan)) throw new Error(plan.map((issue) => issue.message).join('\n'));
  return plan;
}

const tuned = (preset: string) => ({ preset, weights: 's3://bucket/weights/' });
const ONE_GPU = { instanceType: 'ml.p5.4xlarge', training: { ...LORA, activationCheckpointing: 'none' } };
const IN_PAIRS = { training: LORA, distribution: { library: 'fsdp', parameters: { tensor_parallel_degree: 2 } } };

// Adapters of rank 16: docs/performance-summary.mdx of NVIDIA-NeMo/Automodel@36044ad3. Qwen3-32B: pytorch/torchtitan#1690.
test.each<[string, number, Published]>([
  ['Llama 3.1 8B, adapters, one H100', 12_473, { model: tuned('llama3.1-8b'), ...ONE_GPU }],
  ['Qwen2.5 7B, adapters, one H100', 14_110, { model: tuned('qwen2.5-7b'), ...ONE_GPU }],
  ['Qwen2.5 32B, adapters, 8 H100', 2250, { model: tuned('qwen2.5-32b'), ...IN_PAIRS }],
  ['Qwen2.5 32B, adapters, 16 H100', 2073, { model: tuned('qwen2.5-32b'), ...IN_PAIRS, instances: 2 }],
  ['Llama 3.1 70B, adapters, 8 H100', 1092, { model: tuned('llama3.1-70b'), ...IN_PAIRS }],
  ['Llama 3.1 70B, adapters, 16 H100', 985, { model: tuned('llama3.1-70b'), ...IN_PAIRS, instances: 2 }],
  [
    'Qwen3 32B, 8 H200',
    1874,
    {
      model: { preset: 'qwen3-32b' },
      training: { globalBatchSize: 16 },
      distribution: COMPILED,
      instanceType: 'ml.p5en.48xlarge',
    },
  ],
])('%s: the interval contains the measured %i tokens a second per GPU', (_, measured, published) => {
  const plan = planned(published);
  const [low, high] = plan.interval80.tokensPerSecondPerGpu;
  expect(plan.fits).toBe('fits');
  expect(low).toBeLessThan(measured);
  expect(high).toBeGreaterThan(measured);
  expect(Math.abs(plan.tokensPerSecondPerGpu / measured - 1)).toBeLessThan(0.1);
});

const MIXTURE = { model: { preset: 'qwen3-30b-a3b' }, training: { microBatchSize: 1, globalBatchSize: 8 } };
const OWN = { source: './own', entryPoint: 'train.py' };
const OF_EIGHT = { library: 'fsdp', parameters: { expert_parallel_degree: 8 } };

// https://huggingface.co/blog/nvidia/accelerating-fine-tuning-nvidia-nemo-automodel and docs/performance-summary.mdx of
// NVIDIA-NeMo/Automodel@36044ad3. A run file does not say how a script computes experts.
test.each<[string, number, Published]>([
  ['Transformers 5', 3075, { ...MIXTURE, code: OWN }],
  ['NeMo AutoModel, one sequence', 11_340, { ...MIXTURE, code: OWN, distribution: OF_EIGHT }],
  [
    'NeMo AutoModel, four sequences',
    12_040,
    { ...MIXTURE, training: { microBatchSize: 4, globalBatchSize: 512 }, distribution: OF_EIGHT },
  ],
])('a mixture by %s: the interval contains the measured %i tokens a second per GPU', (_, measured, published) => {
  const [low, high] = planned(published).interval80.tokensPerSecondPerGpu;
  expect(low).toBeLessThan(measured);
  expect(high).toBeGreaterThan(measured);
});

// All weights of Qwen2.5 32B with a script of their own, one sequence on each GPU: simplescaling/s1#13, #25 and #106.
test.each([
  [8, 32_768, 'oom'],
  [16, 32_768, 'oom'],
  [16, 20_000, 'tight'],
])('Qwen2.5 32B on %i H100 with %i tokens: %s, as its users found', (gpus, sequenceLength, fits) => {
  const training = { sequenceLength, microBatchSize: 1, globalBatchSize: 16 };
  const code = { source: './own', entryPoint: 'train.py' };
  expect(planned({ model: { preset: 'qwen2.5-32b' }, code, training, instances: gpus / 8 }).fits).toBe(fits);
});
