import { expect, test } from 'vitest';
import { trainingJobRequest } from '../../../lib/core/job/training-request';
import { BASE, DESCRIPTOR, issuesOf, planOf, runOf } from '../../support/runs';

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
  ['both', ['ml.p4d.24xlarge', 'ml.c5.18xlarge'], { VolumeSizeInGB: 100, VolumeKmsKeyId: DESCRIPTOR.kmsKeyArn }],
])(
  'groups with %s have the volume that the service requires, and never one without the key',
  (_what, types, volume) => {
    expect(volumeOf(...types)).toEqual(volume);
  },
);

test('a volume is warned of where no type has one', () => {
  const sized = (...types: string[]) => ({
    ...file(...types),
    compute: { ...file(...types).compute, volumeSizeGiB: 200 },
  });
  expect(issuesOf(sized('ml.p4d.24xlarge'), 'compute/volume')).toMatchObject([{ level: 'warning' }]);
  expect(issuesOf(sized('ml.p4d.24xlarge', 'ml.c5.18xlarge'), 'compute/volume')).toEqual([]);
});

test('what a run asks of network, capacity and volume is in its request, and nothing else', () => {
  const plain = trainingJobRequest(planOf(runOf(BASE)));
  for (const name of ['EnableNetworkIsolation', 'EnableInterContainerTrafficEncryption', 'EnableManagedSpotTraining'])
    expect(plain).not.toHaveProperty(name);
  expect(plain).not.toHaveProperty('CheckpointConfig');
  expect(plain).not.toHaveProperty('HyperParameters');
  const hyperparameters = { lr: 0.1 };
  expect(trainingJobRequest(planOf(runOf({ ...BASE, hyperparameters }))).HyperParameters).toEqual({ lr: '0.1' });
  expect(plain.VpcConfig).toEqual({ Subnets: ['subnet-0aaa'], SecurityGroupIds: ['sg-0ccc'] });
  const asked = trainingJobRequest(
    planOf(
      runOf({
        ...BASE,
        compute: { ...BASE.compute, capacity: 'spot', infraCheck: true },
        network: { isolation: true, interContainerEncryption: true },
        checkpoints: { mode: 'managed', s3: 's3://{checkpointBucket}/mine/{runId}/' },
      }),
    ),
  );
  expect(asked).toMatchObject({
    EnableNetworkIsolation: true,
    EnableInterContainerTrafficEncryption: true,
    EnableManagedSpotTraining: true,
    InfraCheckConfig: { EnableInfraCheck: true },
    CheckpointConfig: { S3Uri: 's3://checkpoint-bucket/mine/base-261101090000/', LocalPath: '/opt/ml/checkpoints' },
  });
  const noVpc = { ...planOf(runOf(BASE)), descriptor: { ...DESCRIPTOR, subnetIds: [], securityGroupIds: [] } };
  expect(trainingJobRequest(noVpc)).not.toHaveProperty('VpcConfig');
});

test('channels say what the run file says of them, and nothing more', () => {
  const channelOf = (channel: Record<string, unknown>) =>
    trainingJobRequest(planOf(runOf({ ...BASE, data: [{ channel: 'train', ...channel }] }))).InputDataConfig?.[0];
  const s3 = { S3DataType: 'S3Prefix', S3Uri: 's3://data-bucket/a/', S3DataDistributionType: 'FullyReplicated' };
  expect(channelOf({ s3: 's3://{dataBucket}/a/' })).toEqual({
    ChannelName: 'train',
    InputMode: 'File',
    DataSource: { S3DataSource: s3 },
  });
  expect(
    channelOf({
      s3: 's3://{dataBucket}/a/',
      inputMode: 'FastFile',
      shuffleSeed: 0,
      contentType: 'text/plain',
    }),
  ).toEqual({
    ChannelName: 'train',
    InputMode: 'FastFile',
    ContentType: 'text/plain',
    ShuffleConfig: { Seed: 0 },
    DataSource: { S3DataSource: s3 },
  });
  const manifest = { s3: 's3://{dataBucket}/list', s3DataType: 'AugmentedManifestFile', attributeNames: ['text'] };
  expect(channelOf(manifest)).toMatchObject({
    RecordWrapperType: 'RecordIO',
    DataSource: { S3DataSource: { S3DataType: 'AugmentedManifestFile', AttributeNames: ['text'] } },
  });
});
