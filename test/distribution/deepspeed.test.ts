import { expect, test } from 'vitest';
import { resolvedDeepspeedConfig } from '../../lib/distribution/deepspeed';
import { BASE, issuesOf, runOf } from '../support/runs';

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

test.each([
  ['fp32', false, false],
  ['bf16', true, false],
  ['fp8', true, false],
  ['nvfp4', true, false],
  ['fp16', false, true],
])('precision %s answers "auto" of bf16 with %s and of fp16 with %s, and agrees with it', (precision, bf16, fp16) => {
  const written = { ...deepspeed({ bf16: { enabled: 'auto' }, fp16: { enabled: 'auto' } }), training: { precision } };
  expect(resolvedDeepspeedConfig(runOf(written))).toMatchObject({ bf16: { enabled: bf16 }, fp16: { enabled: fp16 } });
  const told = { ...deepspeed({ bf16: { enabled: bf16 }, fp16: { enabled: fp16 } }), training: { precision } };
  expect(issuesOf(told, 'deepspeed/conflict')).toEqual([]);
});
