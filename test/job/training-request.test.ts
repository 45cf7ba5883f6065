import { expect, test } from 'vitest';
import { trainingJobRequest } from '../../lib/job/training-request';
import { BASE, DESCRIPTOR, issuesOf, planOf, runOf } from '../support/runs';

test('a program of the image starts as the run file says, and no channel of the driver is added', () => {
  const code = { source: 'image', containerEntrypoint: ['python3', '/opt/main.py'], containerArguments: ['--go'] };
  const request = trainingJobRequest(planOf(runOf({ ...BASE, code })));
  expect(request.AlgorithmSpecification).toMatchObject({
    ContainerEntrypoint: ['python3', '/opt/main.py'],
    ContainerArguments: ['--go'],
  });
  expect(request.InputDataConfig).toBeUndefined();
  expect(request.Environment).toEqual({ SLIPWAY_RUN_ID: 'base-261101090000', SLIPWAY_ATTEMPT: '1' });
  const bare = trainingJobRequest(planOf(runOf({ ...BASE, code: { source: 'image' } }))).AlgorithmSpecification;
  expect([bare?.ContainerEntrypoint, bare?.ContainerArguments]).toEqual([undefined, undefined]);
});

test('the output goes where the run file says, with placeholders filled in', () => {
  const output = { s3: 's3://{checkpointBucket}/runs/{team}/{runId}/out/', compression: 'gzip' };
  expect(trainingJobRequest(planOf(runOf({ ...BASE, output }))).OutputDataConfig).toEqual({
    S3OutputPath: 's3://checkpoint-bucket/runs/nlp/base-261101090000/out/',
    KmsKeyId: DESCRIPTOR.kmsKeyArn,
    CompressionType: 'GZIP',
  });
});

const file = (...types: string[]) => ({
  ...BASE,
  compute: { instanceGroups: types.map((instanceType, i) => ({ name: `g${i}`, instanceType, instanceCount: 1 })) },
});
const volumeOf = (...types: string[]) => {
  const { VolumeSizeInGB, VolumeKmsKeyId } = trainingJobRequest(planOf(runOf(file(...types)))).ResourceConfig ?? {};
  return { VolumeSizeInGB, VolumeKmsKeyId };
};

test.each([
  ['local NVMe alone', ['ml.p4d.24xlarge'], { VolumeSizeInGB: undefined, VolumeKmsKeyId: undefined }],
  ['EBS alone', ['ml.c5.18xlarge'], { VolumeSizeInGB: 100, VolumeKmsKeyId: DESCRIPTOR.kmsKeyArn }],
  ['both', ['ml.p4d.24xlarge', 'ml.c5.18xlarge'], { VolumeSizeInGB: 100, VolumeKmsKeyId: undefined }],
])('groups with %s have the volume that the service asks for', (_what, types, volume) => {
  expect(volumeOf(...types)).toEqual(volume);
});

test('a volume is warned of where no type has one', () => {
  const sized = (...types: string[]) => ({
    ...file(...types),
    compute: { ...file(...types).compute, volumeSizeGiB: 200 },
  });
  expect(issuesOf(sized('ml.p4d.24xlarge'), 'compute/volume')).toMatchObject([{ level: 'warning' }]);
  expect(issuesOf(sized('ml.p4d.24xlarge', 'ml.c5.18xlarge'), 'compute/volume')).toEqual([]);
});
