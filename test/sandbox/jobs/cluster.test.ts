import { expect, test } from 'vitest';
import { clusterOf, clusterOptions } from '../../../lib/sandbox/jobs/cluster';
import { inputDataConfig, resourceConfig } from '../../../lib/sandbox/jobs/instances/running-instance';

test('hosts are numbered through the groups and sorted as strings', () => {
  const { cluster } = clusterOptions({
    InstanceGroups: [
      { InstanceGroupName: 'gpu', InstanceType: 'ml.p4d.24xlarge', InstanceCount: 10 },
      { InstanceGroupName: 'cpu', InstanceType: 'ml.c5.18xlarge', InstanceCount: 1 },
    ],
  })[0] ?? { cluster: clusterOf([]) };

  expect(resourceConfig(cluster, 'algo-11')).toMatchObject({
    current_host: 'algo-11',
    current_instance_type: 'ml.c5.18xlarge',
    current_group_name: 'cpu',
    hosts: [
      'algo-1',
      'algo-10',
      'algo-11',
      'algo-2',
      'algo-3',
      'algo-4',
      'algo-5',
      'algo-6',
      'algo-7',
      'algo-8',
      'algo-9',
    ],
    instance_groups: [
      { instance_group_name: 'gpu', instance_type: 'ml.p4d.24xlarge', hosts: expect.arrayContaining(['algo-10']) },
      { instance_group_name: 'cpu', instance_type: 'ml.c5.18xlarge', hosts: ['algo-11'] },
    ],
  });
});

test('preferences are tried in their order, each with its own or the common count', () => {
  const options = clusterOptions({
    InstancePreferences: [{ InstanceType: 'ml.p4d.24xlarge' }, { InstanceType: 'ml.p4de.24xlarge' }],
    InstanceCount: 3,
  });

  expect(options.map((option) => option.demands)).toEqual([
    [{ instanceType: 'ml.p4d.24xlarge', count: 3 }],
    [{ instanceType: 'ml.p4de.24xlarge', count: 3 }],
  ]);
});

test('inputdataconfig.json names the mode of each channel', () => {
  expect(inputDataConfig([{ ChannelName: 'a', DataSource: {}, InputMode: 'FastFile' }], 'File')).toEqual({
    a: {
      ContentType: undefined,
      TrainingInputMode: 'FastFile',
      S3DistributionType: 'FullyReplicated',
      RecordWrapperType: 'None',
    },
  });
});
