import { expect, test } from 'vitest';
import { findStrategy } from '../../../lib/core/distribution';
import { BASE, runOf } from '../../support/runs';

test('own code in a Hugging Face image starts as torchrun does, and SMDDP finds its instance type', () => {
  const run = runOf({
    ...BASE,
    image: { kind: 'huggingface', version: '4.46.1' },
    distribution: { library: 'custom', contract: 'entrypoint', collectives: 'smddp' },
  });
  const strategy = findStrategy(run);
  expect(strategy?.name).toBe('torchrun');
  expect(strategy?.environment(run)).toEqual({ SAGEMAKER_INSTANCE_TYPE: 'ml.p4d.24xlarge' });
  expect(strategy?.hyperparameters(run)).toEqual({
    sagemaker_torch_distributed_enabled: true,
    sagemaker_instance_type: 'ml.p4d.24xlarge',
  });
});
