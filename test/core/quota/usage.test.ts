import { expect, test } from 'vitest';
import { type JobInstances, quotaUsage } from '../../../lib/core/quota';

const job = (more: Partial<JobInstances>): JobInstances => ({
  kind: 'training',
  status: 'InProgress',
  spot: false,
  instances: [{ instanceType: 'ml.p4d.24xlarge', count: 2 }],
  ...more,
});

test('live and stopping jobs hold their instances, each in its own pool', () => {
  const used = quotaUsage([
    job({}),
    job({ status: 'Stopping' }),
    job({ spot: true }),
    job({ kind: 'processing', instances: [{ instanceType: 'ml.c5.xlarge', count: 1 }] }),
    job({ status: 'Completed' }),
  ]);
  expect(Object.fromEntries(used)).toEqual({
    'ml.p4d.24xlarge for training job usage': 4,
    'Number of instances across all training jobs': 4,
    'ml.p4d.24xlarge for spot training job usage': 2,
    'Number of instances across all spot training jobs': 2,
    'ml.c5.xlarge for processing job usage': 1,
    'Number of instances across all processing jobs': 1,
  });
});

test('a warm pool counts inside the training quota too; one that was taken again does not count twice', () => {
  const used = quotaUsage([
    job({ status: 'Stopped', warmPoolStatus: 'Available' }),
    job({ status: 'Completed', warmPoolStatus: 'InUse' }),
    job({ status: 'Completed', warmPoolStatus: 'Reused' }),
  ]);
  expect(Object.fromEntries(used)).toEqual({
    'ml.p4d.24xlarge for training job usage': 2,
    'ml.p4d.24xlarge for training warm pool usage': 2,
    'Number of instances across all training jobs': 2,
  });
});
