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

test.each([
  [
    {},
    'gloo',
    ['must agree with distribution.collectives nccl, got gloo; set distribution.collectives gloo, or remove it'],
  ],
  [{ collectives: 'nccl' }, 'nccl', []],
  [{}, 'nccl', []],
  [{ collectives: 'smddp' }, 'smddp', []],
  [{ collectives: 'smddp' }, 'nccl', ['must agree with distribution.collectives smddp, got nccl']],
  [{}, 7, []],
])('with %j the script starts dist_backend %s', (changes, dist_backend, messages) => {
  const file = deepspeed({ dist_backend });
  const found = issuesOf({ ...file, distribution: { ...file.distribution, ...changes } }, 'deepspeed/backend');
  expect(found.map((i) => [i.level, i.message])).toEqual(
    messages.map((message) => ['error', expect.stringContaining(message)]),
  );
});

test('fails: precisions that contradict each other, as they stand in the file', () => {
  const both = deepspeed({ bf16: { enabled: true }, fp16: { enabled: true } });
  expect(issuesOf(both, 'deepspeed/precision').map((i) => i.message)).toEqual([
    'distribution.parameters.fp16.enabled: must be false when bf16 is enabled, got true; keep one of the two',
  ]);
  const other = { ...deepspeed({ fp16: { enabled: true } }), training: { precision: 'bf16' } };
  expect(issuesOf(other, 'deepspeed/conflict').map((i) => i.message)).toEqual([
    'distribution.parameters.fp16.enabled: must agree with training.precision bf16, got true; write one of the two',
  ]);
});

test.each<[object, [string, string][]]>([
  [{ stage: 2, offload_param: { device: 'cpu' } }, [['offload_param', 'must go with stage 3, got stage 2']]],
  [
    { stage: 0, offload_optimizer: { device: 'cpu' } },
    [['offload_optimizer', 'must go with stage 1, 2 or 3, got stage 0']],
  ],
  [{ stage: 3, offload_param: { device: 'nvme' }, offload_optimizer: {} }, []],
  [{ stage: 1, offload_optimizer: { device: 'cpu' } }, []],
  [{ stage: 0, offload_param: { device: 'none' }, offload_optimizer: { device: 'none' } }, []],
  [{ stage: 'auto', offload_param: { device: 'cpu' } }, []],
  [{ offload_param: { device: 'cpu' } }, []],
  [{ stage: 1 }, []],
])('offload by the stage: %j', (zero_optimization, expected) => {
  const found = issuesOf(deepspeed({ zero_optimization }), 'deepspeed/offload').map((i) => i.message);
  expect(found).toEqual(
    expected.map(([key, said]) => expect.stringContaining(`distribution.parameters.zero_optimization.${key}: ${said}`)),
  );
});

test('fails: a misspelled key of the configuration, with the ones that are near', () => {
  const found = issuesOf(deepspeed({ gradient_cliping: 1, gradient_clipping: 1 }), 'deepspeed/keys');
  expect(found.map((i) => [i.level, i.message])).toEqual([
    [
      'warning',
      expect.stringMatching(
        /^distribution.parameters.gradient_cliping: must be a key of the DeepSpeed configuration, got gradient_cliping; use gradient_clipping or/,
      ),
    ],
  ]);
});

test('one precision alone is no contradiction', () => {
  for (const name of ['bf16', 'fp16'])
    expect(issuesOf(deepspeed({ [name]: { enabled: true } }), 'deepspeed/precision')).toEqual([]);
});
