import { expect, test } from 'vitest';
import { processingJobRequest } from '../../../lib/core/job/processing-request';
import { DESCRIPTOR, planOf, runOf } from '../../support/runs';

const TOKENIZE = {
  name: 'tokens',
  kind: 'processing',
  code: { source: 'builtin-tokenize', arguments: { tokenizer: 'byte' } },
  compute: { instanceType: 'ml.m5.4xlarge', instanceCount: 4 },
  data: [{ channel: 'raw', s3: 's3://{dataBucket}/raw/', s3DataDistribution: 'ShardedByS3Key' }],
  output: { s3: 's3://{dataBucket}/tokens/' },
};

const requestOf = (file: Record<string, unknown>, of: Partial<ReturnType<typeof planOf>> = {}) =>
  processingJobRequest({ ...planOf(runOf({ ...TOKENIZE, ...file })), ...of });

const input = (name: string, S3Uri: string, S3DataDistributionType = 'FullyReplicated') => ({
  InputName: name,
  S3Input: {
    S3Uri,
    LocalPath: `/opt/ml/processing/input/${name}`,
    S3DataType: 'S3Prefix',
    S3InputMode: 'File',
    S3DataDistributionType,
  },
});

test('the whole request of a tokenise step', () => {
  expect(requestOf({ tags: { project: 'c4' }, environmentVariables: { LEVEL: 'debug' } })).toEqual({
    ProcessingJobName: 'research-base-261101090000-a001',
    RoleArn: DESCRIPTOR.processingRoleArn,
    AppSpecification: {
      ImageUri: DESCRIPTOR.trainingImageUri,
      ContainerEntrypoint: ['/bin/bash'],
      ContainerArguments: ['-c', 'exec bash "${SAGEMAKER_BASE_DIR:-/opt/ml}/processing/input/driver/launch.sh"'],
    },
    Environment: { SLIPWAY_RUN_ID: 'base-261101090000', SLIPWAY_ATTEMPT: '1', LEVEL: 'debug' },
    ProcessingInputs: [
      input('raw', 's3://data-bucket/raw/', 'ShardedByS3Key'),
      input('driver', 's3://artifact-bucket/drivers/0f3a9c/'),
      input('job', 's3://artifact-bucket/runs/nlp/base-261101090000/job/1/'),
    ],
    ProcessingOutputConfig: {
      Outputs: [
        {
          OutputName: 'output',
          S3Output: {
            S3Uri: 's3://data-bucket/tokens/',
            LocalPath: '/opt/ml/processing/output',
            S3UploadMode: 'Continuous',
          },
        },
      ],
      KmsKeyId: DESCRIPTOR.kmsKeyArn,
    },
    ProcessingResources: {
      ClusterConfig: {
        InstanceType: 'ml.m5.4xlarge',
        InstanceCount: 4,
        VolumeSizeInGB: 100,
        VolumeKmsKeyId: DESCRIPTOR.kmsKeyArn,
      },
    },
    StoppingCondition: { MaxRuntimeInSeconds: 432_000 },
    NetworkConfig: {
      EnableNetworkIsolation: false,
      EnableInterContainerTrafficEncryption: false,
      VpcConfig: { Subnets: ['subnet-0aaa'], SecurityGroupIds: ['sg-0ccc'] },
    },
    Tags: [
      { Key: 'project', Value: 'c4' },
      { Key: 'slipway:environment', Value: 'research' },
      { Key: 'slipway:team', Value: 'nlp' },
      { Key: 'slipway:run', Value: 'base-261101090000' },
      { Key: 'slipway:attempt', Value: '1' },
    ],
  });
});

test('own code is an input, a manifest and a pipe stay what they are', () => {
  const data = [{ channel: 'raw', s3: 's3://data-bucket/list', s3DataType: 'ManifestFile', inputMode: 'Pipe' }];
  const { ProcessingInputs } = requestOf(
    { data },
    { code: { uri: 's3://artifact-bucket/runs/nlp/code.tar.gz', sha256: null } },
  );
  expect(ProcessingInputs?.map(({ InputName }) => InputName)).toEqual(['raw', 'driver', 'job', 'code']);
  expect(ProcessingInputs?.[0]?.S3Input).toMatchObject({ S3DataType: 'ManifestFile', S3InputMode: 'Pipe' });
  expect(ProcessingInputs?.[3]).toEqual(input('code', 's3://artifact-bucket/runs/nlp/code.tar.gz'));
});

const noVpc = { descriptor: { ...DESCRIPTOR, subnetIds: [], securityGroupIds: [], processingRoleArn: undefined } };

test('without a VPC, isolation and encryption nothing is said of the network', () => {
  expect(requestOf({}, noVpc)).not.toHaveProperty('NetworkConfig');
});

test.each(['isolation', 'interContainerEncryption'])('network.%s alone is said without a VPC', (option) => {
  expect(requestOf({ network: { [option]: true } }, noVpc).NetworkConfig).toEqual({
    EnableNetworkIsolation: option === 'isolation',
    EnableInterContainerTrafficEncryption: option === 'interContainerEncryption',
  });
});

test('an environment without processing roles uses the execution role', () => {
  expect(requestOf({}, noVpc).RoleArn).toBe(DESCRIPTOR.executionRoleArn);
});

test('volume and run time are those of the run file, up to what the service allows', () => {
  const compute = { ...TOKENIZE.compute, volumeSizeGiB: 500 };
  expect(requestOf({ compute }).ProcessingResources?.ClusterConfig?.VolumeSizeInGB).toBe(500);
  const seconds = (maxRuntimeSeconds: number) => requestOf({ limits: { maxRuntimeSeconds } }).StoppingCondition;
  expect(seconds(3600)).toEqual({ MaxRuntimeInSeconds: 3600 });
  expect(seconds(2_000_000)).toEqual({ MaxRuntimeInSeconds: 777_600 });
});

test('preferred types have one count for all, or each its own', () => {
  const clusterOf = (...alternatives: unknown[]) =>
    requestOf({ compute: { ...TOKENIZE.compute, alternatives } }).ProcessingResources?.ClusterConfig;
  expect(clusterOf({ instanceType: 'ml.c5.4xlarge' })).toEqual({
    InstancePreferences: [{ InstanceType: 'ml.m5.4xlarge' }, { InstanceType: 'ml.c5.4xlarge' }],
    InstanceCount: 4,
    VolumeSizeInGB: 100,
    VolumeKmsKeyId: DESCRIPTOR.kmsKeyArn,
  });
  expect(clusterOf({ instanceType: 'ml.c5.4xlarge' }, { instanceType: 'ml.c5.2xlarge', instanceCount: 8 })).toEqual({
    InstancePreferences: [
      { InstanceType: 'ml.m5.4xlarge', InstanceCount: 4 },
      { InstanceType: 'ml.c5.4xlarge', InstanceCount: 4 },
      { InstanceType: 'ml.c5.2xlarge', InstanceCount: 8 },
    ],
    VolumeSizeInGB: 100,
    VolumeKmsKeyId: DESCRIPTOR.kmsKeyArn,
  });
});
