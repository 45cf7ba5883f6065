import { expect, test } from 'vitest';
import { planRun } from '../../../../lib/core/planner/run/plan-run';
import { runOf } from '../../../support/runs';

const run = (preset: string, launcher = 'ray') =>
  runOf({
    name: 'grpo',
    code: { source: './src' },
    model: { preset },
    training: { sequenceLength: 4096, microBatchSize: 1, globalBatchSize: 64 },
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 2 },
    distribution: { launcher },
  });

function planned(preset: string, launcher?: string) {
  const plan = planRun(run(preset, launcher), { region: 'us-west-2' });
  if (Array.isArray(plan)) throw new Error(plan.map((i) => i.message).join('\n'));
  return plan;
}

test('own code under Ray is planned as fully sharded, and the plan says what it leaves out', () => {
  const { layout, assumptions } = planned('llama3-8b');
  expect([layout.shard, layout.replicate, layout.zeroStage]).toEqual([16, 1, 3]);
  expect(assumptions.join('\n')).toMatch(/places its workers itself[\s\S]*generation, rewards, a critic/);
});

// 8.03 B parameters in 2 bytes; 32 layers x 2 x 8 heads x 128 numbers x 4096 tokens in 2 bytes.
test('weights and cache of an inference engine follow from the shape', () => {
  expect(planned('llama3-8b').assumptions.at(-1)).toContain('about 15.0 GiB for its weights');
  expect(planned('llama3-8b').assumptions.at(-1)).toContain(
    '0.50 GiB of cache for each sequence of 4096 tokens: an estimate',
  );
});

// 61 layers x (512 + 64) numbers x 4096 tokens in 2 bytes: what latent attention keeps, not its heads.
test('the cache of latent attention is the compressed one', () => {
  expect(planned('deepseek-v3').assumptions.join('\n')).toContain('0.27 GiB of cache');
});

test('other launchers plan nothing of the kind', () => {
  expect(planned('llama3-8b', 'torchrun').assumptions.join('\n')).not.toContain('inference engine');
});
