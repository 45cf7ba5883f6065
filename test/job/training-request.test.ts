import { expect, test } from 'vitest';
import { trainingJobRequest } from '../../lib/job/training-request';
import { BASE, DESCRIPTOR, issuesOf, planOf, runOf } from '../support/runs';

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
