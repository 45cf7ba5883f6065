import {
  DescribeProcessingJobCommand,
  DescribeTrainingJobCommand,
  ListProcessingJobsCommand,
  ListTrainingJobsCommand,
  SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { beforeEach, expect, test } from 'vitest';
import { readUsage } from '../../../lib/shared/aws/live-usage';
import { eachInTurn } from '../../../lib/shared/aws/pace';
import { mockClient } from '../../support/mocked-clients';

const sagemaker = mockClient(SageMakerClient);
beforeEach(() => sagemaker.reset());

test('listings of training jobs keep half a second apart, pages included', async () => {
  const calls: string[] = [];
  sagemaker.on(ListTrainingJobsCommand).callsFake(({ StatusEquals, NextToken }) => {
    calls.push('list');
    return StatusEquals === 'InProgress' && !NextToken ? { TrainingJobSummaries: [], NextToken: 'more' } : {};
  });
  sagemaker.on(ListProcessingJobsCommand).resolves({});
  await readUsage(new SageMakerClient({ region: 'us-west-2' }), async (ms) => calls.push(`${ms}`));
  expect(calls).toEqual(['list', '500', 'list', '500', 'list', '500', 'list']);
});

test('a job with preferences counts on the type that was selected, training and processing alike', async () => {
  sagemaker.on(ListTrainingJobsCommand).resolves({});
  sagemaker.on(ListProcessingJobsCommand).resolves({});
  sagemaker.on(ListTrainingJobsCommand, { StatusEquals: 'InProgress' }).resolves({
    TrainingJobSummaries: [
      { TrainingJobName: 't', TrainingJobArn: 'a', CreationTime: new Date(0), TrainingJobStatus: 'InProgress' },
    ],
  });
  sagemaker.on(ListProcessingJobsCommand, { StatusEquals: 'InProgress' }).resolves({
    ProcessingJobSummaries: [
      { ProcessingJobName: 'p', ProcessingJobArn: 'a', CreationTime: new Date(0), ProcessingJobStatus: 'InProgress' },
    ],
  });
  sagemaker.on(DescribeTrainingJobCommand).resolves({
    TrainingJobStatus: 'InProgress',
    ResourceConfig: { InstanceCount: 2, SelectedInstanceType: 'ml.g5.12xlarge', VolumeSizeInGB: 1 },
  });
  sagemaker.on(DescribeProcessingJobCommand).resolves({
    ProcessingJobStatus: 'InProgress',
    ProcessingResources: {
      ClusterConfig: { SelectedInstanceType: 'ml.g6.12xlarge', SelectedInstanceCount: 3, VolumeSizeInGB: 1 },
    },
  });
  const usage = await readUsage(new SageMakerClient({ region: 'us-west-2' }), async () => {});
  expect(JSON.stringify([...usage])).toMatch(/ml\.g5\.12xlarge.*2/);
  expect(JSON.stringify([...usage])).toMatch(/ml\.g6\.12xlarge.*3/);
});

test('at most so many are under way at once, and results keep their order', async () => {
  let live = 0;
  let most = 0;
  const results = await eachInTurn([5, 4, 3, 2, 1, 0], 2, async (item) => {
    live += 1;
    most = Math.max(most, live);
    for (let turn = 0; turn < item; turn++) await Promise.resolve();
    live -= 1;
    return item * 10;
  });
  expect([most, results]).toEqual([2, [50, 40, 30, 20, 10, 0]]);
});

test('fails: after a failure none is begun', async () => {
  const begun: number[] = [];
  const work = async (item: number) => {
    begun.push(item);
    await Promise.resolve();
    if (item === 1) throw new Error('one');
  };
  await expect(eachInTurn([0, 1, 2, 3, 4, 5, 6, 7], 2, work)).rejects.toThrow('one');
  await new Promise((resolve) => setImmediate(resolve));
  expect(begun).toEqual([0, 1, 2]);
});
