import {
  DescribeProcessingJobCommand,
  DescribeTrainingJobCommand,
  ListTagsCommand,
  SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { beforeEach, describe, expect, test } from 'vitest';
import { describeJob } from '../../../lib/control/reconcile/observe/describe';
import type { PresentJob } from '../../../lib/core/lifecycle/record';
import { attempt, running, T0 } from '../../core/lifecycle/support/records';
import { mockClient } from '../../support/mocked-clients';
import { serviceError } from '../support/fake-sagemaker';

const at = (minutes: number) => new Date(T0 + minutes * 60_000);
const mock = mockClient(SageMakerClient);
const client = new SageMakerClient({ region: 'us-west-2' });
beforeEach(() => mock.reset());

/** What is observed where Describe returns this and what every job has. */
async function seen(job: object): Promise<PresentJob> {
  const whole = { TrainingJobArn: 'arn:job', TrainingJobStatus: 'InProgress' as const, CreationTime: at(0) };
  mock.on(DescribeTrainingJobCommand).resolves({ ...whole, ...job });
  return (await describeJob(client, running(), attempt())) as PresentJob;
}

describe('what Describe says of a training job', () => {
  test('nothing, where it says nothing', async () => {
    expect(await seen({})).toEqual({
      kind: 'present',
      arn: 'arn:job',
      status: 'InProgress',
      secondaryStatus: '',
      failureReason: '',
      createdAt: T0,
      pauses: { ms: 0 },
      identity: 'ours',
    });
  });

  test('when it trains: since the last of its starts, whose order the answer does not promise', async () => {
    const SecondaryStatusTransitions = [
      { Status: 'Training', StartTime: at(90) },
      { Status: 'Downloading', StartTime: at(5) },
      { Status: 'Interrupted', StartTime: at(60) },
      { Status: 'Training', StartTime: at(10) },
      { Status: 'Uploading' },
    ];
    expect(await seen({ SecondaryStatusTransitions, TrainingStartTime: at(5) })).toMatchObject({
      trainingStartedAt: T0 + 300_000,
      trainingSince: T0 + 90 * 60_000,
      pauses: { ms: 30 * 60_000 },
    });
    expect(
      (await seen({ SecondaryStatusTransitions: [{ Status: 'Pending', StartTime: at(1) }] })).trainingSince,
    ).toBeUndefined();
  });

  test.each(['Completed', 'Failed', 'Stopped'])(
    'when it is %s: its end and what is billed, else the last change',
    async (TrainingJobStatus) => {
      const times = { LastModifiedTime: at(70), BillableTimeInSeconds: 60 };
      expect(await seen({ TrainingJobStatus, TrainingEndTime: at(65), ...times })).toMatchObject({
        endedAt: T0 + 65 * 60_000,
        billableSeconds: 60,
      });
      expect((await seen({ TrainingJobStatus, ...times })).endedAt).toBe(T0 + 70 * 60_000);
    },
  );

  test.each(['InProgress', 'Stopping'])(
    'while it is %s no end, and nothing that is billed',
    async (TrainingJobStatus) => {
      const live = await seen({ TrainingJobStatus, LastModifiedTime: at(70), BillableTimeInSeconds: 60 });
      expect([live.endedAt, live.billableSeconds]).toEqual([undefined, undefined]);
    },
  );

  test.each<[object | undefined, object | undefined]>([
    [undefined, undefined],
    [{ InstanceCount: 4 }, undefined],
    [{ SelectedInstanceType: 'ml.p5.48xlarge' }, undefined],
    [
      { SelectedInstanceType: 'ml.p5.48xlarge', InstanceCount: 4 },
      { instanceType: 'ml.p5.48xlarge', instanceCount: 4 },
    ],
    [
      { SelectedInstanceType: 'ml.p5.48xlarge', SelectedInstanceCount: 2, InstanceCount: 4 },
      { instanceType: 'ml.p5.48xlarge', instanceCount: 2 },
    ],
  ])('instances %o: the service chose %o', async (ResourceConfig, selected) => {
    expect((await seen({ ResourceConfig })).selected).toEqual(selected);
  });

  test.each([
    [undefined, undefined],
    [{}, undefined],
    [{ Status: 'Available' }, { isKept: true, retainedSeconds: 0 }],
    [
      { Status: 'InUse', ResourceRetainedBillableTimeInSeconds: 9 },
      { isKept: true, retainedSeconds: 9 },
    ],
    [
      { Status: 'Reused', ResourceRetainedBillableTimeInSeconds: 9 },
      { isKept: false, retainedSeconds: 9 },
    ],
    [
      { Status: 'Terminated', ResourceRetainedBillableTimeInSeconds: 0 },
      { isKept: false, retainedSeconds: 0 },
    ],
    [{ Status: 'Terminated' }, undefined],
  ])('warm pool %o: %o', async (WarmPoolStatus, pool) => {
    expect((await seen({ WarmPoolStatus })).warmPool).toEqual(pool);
  });

  test('the last step is the metric of that name', async () => {
    const FinalMetricDataList = [
      { MetricName: 'loss', Value: 2 },
      { MetricName: 'slipway:step', Value: 70 },
    ];
    expect((await seen({ FinalMetricDataList })).lastStep).toBe(70);
    expect((await seen({ FinalMetricDataList: FinalMetricDataList.slice(0, 1) })).lastStep).toBeUndefined();
  });
});

describe('a processing job', () => {
  const observe = (job: object) => {
    const whole = { ProcessingJobArn: 'arn:job', ProcessingJobStatus: 'Failed' as const, CreationTime: at(0) };
    mock.on(DescribeProcessingJobCommand).resolves({ ...whole, ...job });
    return describeJob(client, { ...running(), kind: 'processing' }, attempt());
  };

  test.each([
    [{ ProcessingJobStatus: 'InProgress' }, 'Starting'],
    [{ ProcessingJobStatus: 'InProgress', ProcessingStartTime: at(1) }, 'Training'],
    [{ ProcessingJobStatus: 'Stopping', ProcessingStartTime: at(1) }, 'Stopping'],
    [{ ProcessingJobStatus: 'Failed' }, 'Failed'],
  ] as const)('%o is in %s', async (job, secondaryStatus) => {
    expect(await observe(job)).toMatchObject({ kind: 'present', identity: 'ours', secondaryStatus });
  });

  test('says why it ended in its reason, else in its exit message', async () => {
    expect(await observe({ FailureReason: 'a', ExitMessage: 'b' })).toMatchObject({ failureReason: 'a' });
    expect(await observe({ ExitMessage: 'b', ProcessingEndTime: at(3) })).toMatchObject({
      failureReason: 'b',
      endedAt: T0 + 180_000,
    });
  });
});

describe('whose job it is', () => {
  const record = running({ environment: 'research', runId: 'r' });
  const intended = attempt({ phase: 'intent', number: 2 });
  const OURS = { 'slipway:environment': 'research', 'slipway:run': 'r', 'slipway:attempt': '2' };
  async function identity(Environment: Record<string, string> | undefined, tags?: Record<string, string> | 'denied') {
    mock.reset();
    const whole = { TrainingJobArn: 'arn:job', TrainingJobStatus: 'InProgress' as const, CreationTime: at(0) };
    mock.on(DescribeTrainingJobCommand).resolves({ ...whole, Environment });
    const listed = mock.on(ListTagsCommand, { ResourceArn: 'arn:job' });
    if (tags === 'denied') listed.rejects(new Error('denied'));
    else listed.resolves({ Tags: Object.entries(tags ?? {}).map(([Key, Value]) => ({ Key, Value })) });
    const job = await describeJob(client, record, intended);
    return [job.kind === 'present' && job.identity, mock.commandCalls(ListTagsCommand).length];
  }

  test('is told by its variables, without a call', async () => {
    expect(await identity({ SLIPWAY_RUN_ID: 'r', SLIPWAY_ATTEMPT: '2' })).toEqual(['ours', 0]);
  });

  test.each<Record<string, string> | undefined>([
    undefined,
    {},
    { SLIPWAY_RUN_ID: 'r' },
    { SLIPWAY_RUN_ID: 'r', SLIPWAY_ATTEMPT: '1' },
    { SLIPWAY_RUN_ID: 'x', SLIPWAY_ATTEMPT: '2' },
  ])('is told by its tags where the variables %o do not say it', async (variables) => {
    expect(await identity(variables, OURS)).toEqual(['ours', 1]);
    for (const key of Object.keys(OURS))
      expect(await identity(variables, { ...OURS, [key]: 'x' })).toEqual(['foreign', 1]);
    expect(await identity(variables, 'denied')).toEqual(['unread', 1]);
  });

  test('is known of a job that was seen before', async () => {
    const whole = { TrainingJobArn: 'arn:job', TrainingJobStatus: 'InProgress' as const, CreationTime: at(0) };
    mock.on(DescribeTrainingJobCommand).resolves(whole);
    expect(await describeJob(client, record, attempt())).toMatchObject({ identity: 'ours' });
    expect(mock.commandCalls(ListTagsCommand)).toEqual([]);
  });
});

test.each([
  [serviceError('ValidationException', 'Requested resource not found.'), 'absent'],
  [serviceError('ValidationException', 'Could not find job'), 'absent'],
  [serviceError('ValidationException', 'The job does not exist'), 'absent'],
  [serviceError('ResourceNotFound', 'x'), 'absent'],
  [serviceError('ResourceNotFoundException', 'x'), 'absent'],
  [serviceError('ValidationException', 'name is too long'), 'unreadable'],
  [serviceError('ThrottlingException', 'not found'), 'unreadable'],
])('after %o a job is %s', async (error, kind) => {
  mock.on(DescribeTrainingJobCommand).rejects(error);
  expect(await describeJob(client, running(), attempt())).toMatchObject({ kind });
});
