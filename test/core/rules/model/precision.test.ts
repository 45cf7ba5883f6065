import { expect, test } from 'vitest';
import { BASE, issuesOf } from '../../../support/runs';

const OWN = { code: { source: 'src' } };
const BUILTIN = {
  model: { preset: 'llama3-8b' },
  code: { source: 'builtin' },
  distribution: { library: 'fsdp' },
  data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
};

/** What is said of formats on one instance of a type, as `level path: message`. */
const said = (instanceType: string, training: object, more: object = OWN) =>
  ['training/precision', 'training/fp8-recipe', 'training/builtin-precision'].flatMap((rule) =>
    issuesOf(
      {
        ...BASE,
        ...more,
        compute: { instanceType, instanceCount: 1 },
        training: { sequenceLength: 1024, globalBatchSize: 16, steps: 10, ...training },
      },
      rule,
    ).map(({ level, message }) => `${level} ${message}`),
  );

test.each([
  ['ml.p6-b200.48xlarge', { precision: 'mxfp8' }],
  ['ml.p6-b300.48xlarge', { precision: 'nvfp4' }],
  ['ml.p6e-gb200.36xlarge', { precision: 'nvfp4' }],
  ['ml.p5.48xlarge', { precision: 'fp8', fp8Recipe: 'blockwise' }],
  ['ml.p6-b200.48xlarge', { precision: 'fp8', fp8Recipe: 'rowwise' }],
])('%s takes %j with own code', (type, training) => expect(said(type, training)).toEqual([]));

test.each([
  [
    'ml.p5.48xlarge',
    { precision: 'mxfp8' },
    OWN,
    'error training.precision: must be bf16 or fp8 on ml.p5.48xlarge (NVIDIA H100 80GB has no block-scaled matrix products), got mxfp8; use one of them, or ml.p6-b200.48xlarge and newer',
  ],
  [
    'ml.p4d.24xlarge',
    { precision: 'nvfp4' },
    OWN,
    'error training.precision: must be bf16 on ml.p4d.24xlarge (NVIDIA A100 40GB has no block-scaled matrix products), got nvfp4; use one of them, or ml.p6-b200.48xlarge and newer',
  ],
  [
    'ml.p6-b200.48xlarge',
    { precision: 'fp8', fp8Recipe: 'blockwise' },
    OWN,
    'warning training.fp8Recipe: must be tensorwise or rowwise on ml.p6-b200.48xlarge: PyTorch supports matrix products with blocks of 128 only on Hopper, got blockwise; use rowwise, or training.precision: mxfp8 on B200 and newer',
  ],
  [
    'ml.p5.48xlarge',
    { precision: 'bf16', fp8Recipe: 'rowwise' },
    OWN,
    'error training.fp8Recipe: must be used with training.precision fp8, got rowwise; set training.precision: fp8, or remove it',
  ],
  [
    'ml.p5.48xlarge',
    { precision: 'fp8', fp8Recipe: 'blockwise' },
    BUILTIN,
    'error training.fp8Recipe: must be tensorwise or rowwise for the built-in trainer, got blockwise; use rowwise, or custom code',
  ],
  [
    'ml.p6-b200.48xlarge',
    { precision: 'mxfp8' },
    BUILTIN,
    'error training.precision: must be bf16, fp32 or fp8 for the built-in trainer with fsdp, got mxfp8; set training.precision to one of them, or use custom code with torchao or Transformer Engine',
  ],
])('fails: %s with %j', (type, training, more, message) => expect(said(type, training, more)).toEqual([message]));
