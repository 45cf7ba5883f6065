// A team with a key of its own: every upload of its jobs names the key.
import { describe, expect, test } from 'vitest';
import { processingJobRequest } from '../../../lib/core/job/processing-request';
import { trainingJobRequest } from '../../../lib/core/job/training-request';
import { BASE, DESCRIPTOR, issuesOf, planOf, runOf } from '../../support/runs';

const KEY = 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const own = { ...DESCRIPTOR, teamKeyArn: KEY };
const TOKENS = {
  name: 'tokens',
  kind: 'processing',
  code: { source: 'builtin-tokenize' },
  compute: { instanceType: 'ml.m5.xlarge' },
  data: [{ channel: 'text', s3: 's3://{dataBucket}/text/' }],
  output: { s3: 's3://{dataBucket}/teams/nlp/tokens/' },
};
const EBS = { ...BASE, compute: { instanceType: 'ml.m5.xlarge' } };

test('a training job encrypts outputs and volumes with it, and tells its container', () => {
  const plan = planOf(runOf(EBS));
  const shared = trainingJobRequest(plan);
  const request = trainingJobRequest({ ...plan, descriptor: own });
  expect(request).toEqual({
    ...shared,
    OutputDataConfig: { ...shared.OutputDataConfig, KmsKeyId: KEY },
    ResourceConfig: { ...shared.ResourceConfig, VolumeKmsKeyId: KEY },
    Environment: { ...shared.Environment, SLIPWAY_KMS_KEY_ARN: KEY },
  });
  expect(shared.OutputDataConfig?.KmsKeyId).toBe(DESCRIPTOR.kmsKeyArn);
});

test('a processing job does so too', () => {
  const plan = planOf(runOf(TOKENS));
  const request = processingJobRequest({ ...plan, descriptor: own });
  expect(request.ProcessingOutputConfig?.KmsKeyId).toBe(KEY);
  expect(request.ProcessingResources?.ClusterConfig?.VolumeKmsKeyId).toBe(KEY);
  expect(request.Environment?.SLIPWAY_KMS_KEY_ARN).toBe(KEY);
  expect(processingJobRequest(plan).Environment).not.toHaveProperty('SLIPWAY_KMS_KEY_ARN');
});

describe('fails: what SageMaker uploads by itself can name no key', () => {
  test.each([
    ['checkpoints.mode', { checkpoints: { mode: 'managed' } }],
    ['observability.tensorBoard', { observability: { tensorBoard: true } }],
    ['observability.profiler', { observability: { profiler: 'sagemaker' } }],
  ])('%s', (path, more) => {
    const file = { ...BASE, ...more };
    expect(issuesOf(file, 'guardrails/', { descriptor: own }).map((found) => found.path)).toEqual([path]);
    expect(issuesOf(file, 'guardrails/', { descriptor: DESCRIPTOR })).toEqual([]);
  });
});
