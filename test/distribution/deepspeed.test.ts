import { expect, test } from 'vitest';
import { BASE, issuesOf } from '../support/runs';

const deepspeed = (parameters: object, instanceType = 'ml.p4d.24xlarge') => ({
  ...BASE,
  compute: { instanceType, instanceCount: 2 },
  distribution: { library: 'deepspeed', parameters },
});

test('fails: a batch that the accumulation steps do not divide, with the nearest one', () => {
  const file = deepspeed({ train_batch_size: 64, gradient_accumulation_steps: 3 });
  expect(issuesOf(file, 'deepspeed/').map((i) => i.message)).toEqual([
    'distribution.parameters.train_batch_size: must be a multiple of the 16 ranks x gradient_accumulation_steps 3 = 48, got 64; use 48',
  ]);
});

test('fails: offload to a device that DeepSpeed does not know', () => {
  const file = deepspeed({ zero_optimization: { stage: 3, offload_optimizer: { device: 'disk' } } });
  expect(issuesOf(file, 'deepspeed/')).toMatchObject([
    { rule: 'deepspeed/offload', path: 'distribution.parameters.zero_optimization.offload_optimizer.device' },
  ]);
});

test('fails: bf16 on GPUs that have none', () => {
  const bf16 = { bf16: { enabled: true } };
  expect(issuesOf(deepspeed(bf16, 'ml.p3.16xlarge'), 'deepspeed/')).toMatchObject([{ rule: 'deepspeed/precision' }]);
  expect(issuesOf(deepspeed(bf16), 'deepspeed/')).toEqual([]);
});
