import { describe, expect, test } from 'vitest';
import { inputChannels } from '../../../lib/core/job/channels';
import { teamKeyEncryption } from '../../../lib/core/job/team-key';
import { trainingJobRequest } from '../../../lib/core/job/training-request';
import { BASE, DESCRIPTOR, planOf, runOf } from '../../support/runs';

const train = { channel: 'train', s3: 's3://{dataBucket}/tokens/' };
const channelsOf = (
  more: object,
  code = { uri: 's3://artifact-bucket/runs/nlp/code.tar.gz', sha256: 'c'.repeat(64) },
) => inputChannels({ ...planOf(runOf({ ...BASE, ...more })), code });
const groupsOf = (more: object) =>
  channelsOf(more).map(({ ChannelName, DataSource }) => [ChannelName, DataSource?.S3DataSource?.InstanceGroupNames]);
const HETEROGENEOUS = {
  compute: {
    instanceGroups: [
      { name: 'gpu', instanceType: 'ml.p4d.24xlarge', instanceCount: 2 },
      { name: 'cpu', instanceType: 'ml.c5.18xlarge', instanceCount: 1 },
    ],
  },
};

describe('the channels of the driver', () => {
  test('follow those of the run, each copied whole to every host', () => {
    const channels = channelsOf({ data: [train] });
    expect(channels.map(({ ChannelName }) => ChannelName)).toEqual(['train', 'driver', 'job', 'code']);
    for (const { InputMode, DataSource } of channels.slice(1)) {
      expect(InputMode).toBe('File');
      expect(DataSource?.S3DataSource).toMatchObject({
        S3DataType: 'S3Prefix',
        S3DataDistributionType: 'FullyReplicated',
        S3Uri: expect.stringMatching(/^s3:\/\/artifact-bucket\//),
      });
    }
  });

  test('name every group where one channel of the run names some, and none where none does', () => {
    const second = { channel: 'raw', s3: 's3://{dataBucket}/raw/' };
    expect(groupsOf({ ...HETEROGENEOUS, data: [train, second] }).map(([, names]) => names)).toEqual(
      Array(5).fill(undefined),
    );
    expect(groupsOf({ ...HETEROGENEOUS, data: [{ ...train, instanceGroups: ['gpu'] }, second] })).toEqual([
      ['train', ['gpu']],
      ['raw', undefined],
      ['driver', ['gpu', 'cpu']],
      ['job', ['gpu', 'cpu']],
      ['code', ['gpu', 'cpu']],
    ]);
  });
});

test.each([
  [{ fsxLustre: { fileSystemId: 'fs-0123456789abcdef0', directoryPath: '/m/a' } }, 'FSxLustre', 'ro'],
  [{ fsxLustre: { fileSystemId: 'fs-0123456789abcdef0', directoryPath: '/m/a', access: 'rw' } }, 'FSxLustre', 'rw'],
  [{ efs: { fileSystemId: 'fs-0123456789abcdef0', directoryPath: '/m/a', access: 'ro' } }, 'EFS', 'ro'],
])('a file system %j is mounted as %s, %s', (more, FileSystemType, FileSystemAccessMode) => {
  const [channel] = channelsOf({ data: [{ channel: 'shared', ...more }] });
  expect(channel?.DataSource?.FileSystemDataSource).toEqual({
    FileSystemId: 'fs-0123456789abcdef0',
    FileSystemType,
    FileSystemAccessMode,
    DirectoryPath: '/m/a',
  });
});

describe('the toolkit contract', () => {
  const toolkit = (more: object = {}) => ({
    distribution: { library: 'ddp', contract: 'toolkit' },
    data: [train],
    ...more,
  });

  test('has the channels of the run alone, and its code beside them where the container is isolated', () => {
    expect(channelsOf(toolkit()).map(({ ChannelName }) => ChannelName)).toEqual(['train']);
    const isolated = channelsOf(toolkit({ network: { isolation: true }, checkpoints: { mode: 'managed' } }));
    expect(isolated.map(({ ChannelName }) => ChannelName)).toEqual(['train', 'code']);
  });

  const efaOf = (more: object) =>
    trainingJobRequest(planOf(runOf({ ...BASE, ...toolkit(more) }))).Environment?.FI_PROVIDER;
  const groups = (...types: string[]) => ({
    compute: { instanceGroups: types.map((instanceType, i) => ({ name: `g${i}`, instanceType, instanceCount: 1 })) },
  });
  test.each([
    ['two hosts with EFA', {}, 'efa'],
    ['one host', { compute: { instanceType: 'ml.p4d.24xlarge', instanceCount: 1 } }, undefined],
    ['hosts without EFA', { compute: { instanceType: 'ml.g4dn.xlarge', instanceCount: 2 } }, undefined],
    ['groups of which one has no EFA', groups('ml.p4d.24xlarge', 'ml.c5.18xlarge'), undefined],
    ['groups that all have EFA', groups('ml.p4d.24xlarge', 'ml.p4de.24xlarge'), 'efa'],
    ['EFA switched off', { network: { efa: 'off' } }, undefined],
  ])('sets the provider of EFA on %s: %s', (_, more, provider) => {
    expect(efaOf(more)).toBe(provider);
  });
});

test('what is written for a team is encrypted with its key, where it has one', () => {
  const teamKeyArn = 'arn:aws:kms:us-west-2:111122223333:key/team';
  expect(teamKeyEncryption({ ...DESCRIPTOR, teamKeyArn })).toEqual({
    ServerSideEncryption: 'aws:kms',
    SSEKMSKeyId: teamKeyArn,
  });
  expect(teamKeyEncryption(DESCRIPTOR)).toEqual({});
});
