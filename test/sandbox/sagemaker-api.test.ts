import { EventBridgeClient, PutEventsCommand, PutRuleCommand, PutTargetsCommand } from '@aws-sdk/client-eventbridge';
import {
  AddTagsCommand,
  CreateModelPackageCommand,
  CreateModelPackageGroupCommand,
  DeleteTrainingJobCommand,
  DescribeModelPackageCommand,
  ListTagsCommand,
  ListTrainingJobsCommand,
  SageMakerClient,
  StopTrainingJobCommand,
  UpdateTrainingJobCommand,
} from '@aws-sdk/client-sagemaker';
import { CreateQueueCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../lib/sandbox/testing';
import { bashJob, clientOptions, create, describeJob, finished, inState, type Lab, openLab, run } from './support';

let lab: Lab;

beforeAll(async () => {
  lab = await openLab({
    time: { startingSeconds: 0.02, downloadingSeconds: 0, stopGraceSeconds: 1, secondsPerLimitSecond: 0.02 },
  });
}, 120_000);

afterAll(() => lab.close());

const list = (input: object) => lab.sagemaker.send(new ListTrainingJobsCommand(input));

test('Describe answers the request and the state; tags are listed apart', async () => {
  const request = {
    ...bashJob(lab, 'described', 'true'),
    Tags: [{ Key: 'team', Value: 'a' }],
    HyperParameters: { a: '1' },
  };
  await create(lab, request);
  const { $metadata: _, ...described } = await finished(lab, 'described');

  const { Tags: __, ...sent } = request;
  expect(described).toMatchObject(sent);
  expect(described).not.toHaveProperty('Tags');
  expect(described.TrainingEndTime?.getTime()).toBeGreaterThan(described.CreationTime?.getTime() ?? 0);
  const arn = described.TrainingJobArn;
  expect(arn).toBe('arn:aws:sagemaker:us-east-1:000000000000:training-job/described');
  await lab.sagemaker.send(new AddTagsCommand({ ResourceArn: arn, Tags: [{ Key: 'more', Value: 'b' }] }));
  expect((await lab.sagemaker.send(new ListTagsCommand({ ResourceArn: arn }))).Tags).toEqual([
    { Key: 'team', Value: 'a' },
    { Key: 'more', Value: 'b' },
  ]);
});

test('a name stays taken when the job is over, and is free after DeleteTrainingJob', async () => {
  await run(lab, bashJob(lab, 'again', 'true'));
  await expect(create(lab, bashJob(lab, 'again', 'true'))).rejects.toMatchObject({
    name: 'ResourceInUse',
    message: expect.stringContaining('Training job names must be unique within an AWS account and region'),
  });

  await lab.sagemaker.send(new DeleteTrainingJobCommand({ TrainingJobName: 'again' }));

  await expect(describeJob(lab, 'again')).rejects.toMatchObject({ message: 'Requested resource not found.' });
  expect((await run(lab, bashJob(lab, 'again', 'true'))).TrainingJobStatus).toBe('Completed');
});

test('fails: stopping a job that is over, deleting one that runs, an unknown name', async () => {
  await run(lab, bashJob(lab, 'over', 'true'));
  const running = await create(lab, bashJob(lab, 'running', 'exec sleep 600'));

  await expect(lab.sagemaker.send(new StopTrainingJobCommand({ TrainingJobName: 'over' }))).rejects.toMatchObject({
    name: 'ValidationException',
    message: 'The request was rejected because the training job is in status Completed.',
  });
  await expect(lab.sagemaker.send(new DeleteTrainingJobCommand({ TrainingJobName: running }))).rejects.toMatchObject({
    name: 'ResourceInUse',
  });
  await expect(lab.sagemaker.send(new DeleteTrainingJobCommand({ TrainingJobName: 'nobody' }))).rejects.toMatchObject({
    name: 'ResourceNotFound',
  });
  await lab.sagemaker.send(new StopTrainingJobCommand({ TrainingJobName: running }));
  await finished(lab, running);
});

test('the status filter is applied after the page is cut, and the token leads on', async () => {
  for (const name of ['page-1', 'page-2', 'page-3'])
    await run(lab, bashJob(lab, name, name === 'page-1' ? 'exit 1' : 'true'));
  const query = { NameContains: 'PAGE-', MaxResults: 2, StatusEquals: 'Failed' as const };

  const first = await list(query);
  const second = await list({ ...query, NextToken: first.NextToken });

  expect(first.TrainingJobSummaries).toEqual([]);
  expect(second.TrainingJobSummaries?.map((job) => job.TrainingJobName)).toEqual(['page-1']);
  expect(second.NextToken).toBeUndefined();
  expect(second.TrainingJobSummaries?.[0]).not.toHaveProperty('ResourceConfig');
});

test('jobs are sorted by name or time, and filtered by time of creation', async () => {
  const jobs =
    (await list({ NameContains: 'page-', SortBy: 'Name', SortOrder: 'Ascending' })).TrainingJobSummaries ?? [];
  const [, second] = jobs;

  expect(jobs.map((job) => job.TrainingJobName)).toEqual(['page-1', 'page-2', 'page-3']);
  const after = await list({
    NameContains: 'page-',
    CreationTimeAfter: new Date((second?.CreationTime?.getTime() ?? 0) + 1),
  });
  expect(after.TrainingJobSummaries?.map((job) => job.TrainingJobName)).toEqual(['page-3']);
});

test('each Region and each account has its own jobs', async () => {
  await run(lab, bashJob(lab, 'here', 'true'));
  const there = new SageMakerClient(clientOptions(lab.sandbox, lab.sandbox.endpoints.sagemaker, 'eu-west-1'));
  const other = new SageMakerClient({
    ...clientOptions(lab.sandbox, lab.sandbox.endpoints.sagemaker),
    credentials: { accessKeyId: '111122223333', secretAccessKey: 'test' },
  });

  expect((await there.send(new ListTrainingJobsCommand({}))).TrainingJobSummaries).toEqual([]);
  expect((await other.send(new ListTrainingJobsCommand({}))).TrainingJobSummaries).toEqual([]);
});

test.each([
  [
    'a name with an underscore',
    { TrainingJobName: 'bad_name' },
    "Value 'bad_name' at 'trainingJobName' failed to satisfy constraint: Member must satisfy regular expression pattern",
  ],
  [
    'no output',
    { OutputDataConfig: undefined },
    "Value null at 'outputDataConfig' failed to satisfy constraint: Member must not be null",
  ],
  [
    'an unknown type',
    { ResourceConfig: { InstanceType: 'ml.z9.huge', InstanceCount: 1, VolumeSizeInGB: 1 } },
    "Value 'ml.z9.huge' at 'resourceConfig.instanceType' failed to satisfy constraint: Member must satisfy enum value set",
  ],
  [
    'a pending limit that is too short',
    { StoppingCondition: { MaxPendingTimeInSeconds: 60 } },
    'Member must have value greater than or equal to 1800',
  ],
  [
    'a long hyperparameter',
    { HyperParameters: { a: 'x'.repeat(2501) } },
    'Member must have length less than or equal to 2500',
  ],
  [
    'spot without a wait limit',
    { EnableManagedSpotTraining: true },
    'MaxWaitTimeInSeconds is required when EnableManagedSpotTraining is true.',
  ],
  [
    'a wait limit below the runtime',
    { EnableManagedSpotTraining: true, StoppingCondition: { MaxRuntimeInSeconds: 9, MaxWaitTimeInSeconds: 8 } },
    'Invalid MaxWaitTimeInSeconds.',
  ],
  [
    'two forms of instances',
    {
      ResourceConfig: {
        InstanceType: 'ml.m5.large' as const,
        InstanceCount: 1,
        VolumeSizeInGB: 1,
        InstanceGroups: [{ InstanceGroupName: 'a', InstanceType: 'ml.m5.large' as const, InstanceCount: 1 }],
      },
    },
    'Specify exactly one of InstanceType',
  ],
  [
    'a volume key on local storage',
    { ResourceConfig: { InstanceType: 'ml.p4d.24xlarge' as const, InstanceCount: 1, VolumeKmsKeyId: 'k' } },
    'VolumeKmsKeyId is not supported for instance type ml.p4d.24xlarge',
  ],
  [
    'a role that nobody has',
    { RoleArn: 'arn:aws:iam::000000000000:role/nobody' },
    'Could not assume role arn:aws:iam::000000000000:role/nobody.',
  ],
])('fails: %s', async (_, change, message) => {
  const request = { ...bashJob(lab, 'refused', 'true'), ...change } as never;

  await expect(create(lab, request)).rejects.toMatchObject({
    name: 'ValidationException',
    message: expect.stringContaining(message),
  });
});

test("fails: more instances than the quota, with the service's own words", async () => {
  await expect(create(lab, gpuJob('p5', 2))).rejects.toMatchObject({
    name: 'ResourceLimitExceeded',
    message:
      "The account-level service limit 'ml.p5.48xlarge for training job usage' is 0 Instances, with current utilization of " +
      '0 Instances and a request delta of 2 Instances. Please use AWS Service Quotas to request an increase for this quota. ' +
      'If AWS Service Quotas is not available, contact AWS support to request an increase for this quota.',
  });
});

test('live jobs count against the quota, finished ones do not', async () => {
  await lab.admin.setQuota('us-east-1', 'L-82E1C851', 2);
  const first = await create(lab, gpuJob('p5-first', 2, 'exec sleep 600'));
  await expect(create(lab, gpuJob('p5-second', 1))).rejects.toThrow(
    /is 2 Instances, with current utilization of 2 Instances/,
  );

  await inState(lab, first, 'Training');
  await lab.sagemaker.send(new StopTrainingJobCommand({ TrainingJobName: first }));
  await finished(lab, first);

  expect((await run(lab, gpuJob('p5-second', 1))).TrainingJobStatus).toBe('Completed');
});

test('a warm pool is kept within its quota, counts as usage, and is reused by a job that matches', async () => {
  await lab.admin.setQuota('us-east-1', 'L-82E1C851', 2);
  await lab.admin.setQuota('us-east-1', 'L-5D321F81', 2);
  const warm = (name: string) => {
    const request = gpuJob(name, 2);
    request.ResourceConfig = { ...request.ResourceConfig, KeepAlivePeriodInSeconds: 3600 };
    return request;
  };
  await run(lab, warm('warm-1'));
  await eventually(async () => (await describeJob(lab, 'warm-1')).WarmPoolStatus?.Status === 'Available');
  await expect(create(lab, gpuJob('cold', 1))).rejects.toMatchObject({ name: 'ResourceLimitExceeded' });

  await run(lab, warm('warm-2'));

  expect((await describeJob(lab, 'warm-1')).WarmPoolStatus).toMatchObject({ Status: 'Reused', ReusedByJob: 'warm-2' });
  const pool = await list({ WarmPoolStatusEquals: 'Available' });
  expect(pool.TrainingJobSummaries?.map((job) => job.TrainingJobName)).toEqual(['warm-2']);
  await lab.sagemaker.send(
    new UpdateTrainingJobCommand({ TrainingJobName: 'warm-2', ResourceConfig: { KeepAlivePeriodInSeconds: 0 } }),
  );
  expect((await describeJob(lab, 'warm-2')).WarmPoolStatus?.Status).toBe('Terminated');
});

test('every change of state is an event of aws.sagemaker, which no client may put itself', async () => {
  const options = clientOptions(lab.sandbox, lab.sandbox.endpoints.aws);
  const [events, sqs] = [new EventBridgeClient(options), new SQSClient(options)];
  // Without its policy EventBridge may not send to the queue.
  const Policy = JSON.stringify({
    Version: '2012-10-17',
    Statement: [
      {
        Effect: 'Allow',
        Principal: { Service: 'events.amazonaws.com' },
        Action: 'sqs:SendMessage',
        Resource: 'arn:aws:sqs:us-east-1:000000000000:states',
      },
    ],
  });
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: 'states', Attributes: { Policy } }));
  const pattern = { source: ['aws.sagemaker'], detail: { TrainingJobName: [{ prefix: 'heard-' }] } };
  await events.send(new PutRuleCommand({ Name: 'states', EventPattern: JSON.stringify(pattern) }));
  await events.send(
    new PutTargetsCommand({ Rule: 'states', Targets: [{ Id: 'q', Arn: 'arn:aws:sqs:us-east-1:000000000000:states' }] }),
  );

  await run(lab, { ...bashJob(lab, 'heard-1', 'true'), Tags: [{ Key: 'team', Value: 'a' }] });

  const seen: string[] = [];
  await eventually(async () => {
    const { Messages } = await sqs.send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }));
    for (const { Body } of Messages ?? []) {
      const { detail, ...event } = JSON.parse(Body ?? '{}');
      expect(event['detail-type']).toBe('SageMaker Training Job State Change');
      expect(detail.Tags).toEqual({ team: 'a' });
      expect(detail.CreationTime).toMatch(/^\d{13}$/);
      seen.push(detail.SecondaryStatus);
    }
    return seen.length >= 5;
  });
  expect(seen.sort()).toEqual(['Completed', 'Downloading', 'Starting', 'Training', 'Uploading']);
  const own = await events.send(
    new PutEventsCommand({ Entries: [{ Source: 'aws.sagemaker', DetailType: 'x', Detail: '{}' }] }),
  );
  expect(own.Entries?.[0]?.ErrorCode).toBe('NotAuthorizedForSourceException');
});

function gpuJob(name: string, count: number, script = 'true') {
  const request = bashJob(lab, name, script);
  request.ResourceConfig = { InstanceType: 'ml.p5.48xlarge', InstanceCount: count };
  return request;
}

test('the model registry numbers versions, keeps the tags of a group, and takes a repeated token for the same version', async () => {
  const ModelPackageGroupName = 'research-nlp-tiny';
  const made = await lab.sagemaker.send(
    new CreateModelPackageGroupCommand({ ModelPackageGroupName, Tags: [{ Key: 'slipway:team', Value: 'nlp' }] }),
  );
  const Containers = [{ Image: 'registry/serve:1', ModelDataUrl: 's3://lab/model.tar.gz' }];
  const version = (more: object = {}) =>
    lab.sagemaker.send(
      new CreateModelPackageCommand({ ModelPackageGroupName, InferenceSpecification: { Containers }, ...more }),
    );
  const [first, again, second] = [
    await version({ ClientToken: 'one' }),
    await version({ ClientToken: 'one' }),
    await version({ ModelApprovalStatus: 'Approved' }),
  ].map(({ ModelPackageArn }) => ModelPackageArn);
  const prefix = 'arn:aws:sagemaker:us-east-1:000000000000:model-package';
  expect([first, again, second]).toEqual([1, 1, 2].map((number) => `${prefix}/research-nlp-tiny/${number}`));
  const described = await lab.sagemaker.send(new DescribeModelPackageCommand({ ModelPackageName: second }));
  expect(described).toMatchObject({
    ModelPackageVersion: 2,
    ModelApprovalStatus: 'Approved',
    ModelPackageStatus: 'Completed',
    InferenceSpecification: { Containers },
  });
  const tags = await lab.sagemaker.send(new ListTagsCommand({ ResourceArn: made.ModelPackageGroupArn }));
  expect(tags.Tags).toEqual([{ Key: 'slipway:team', Value: 'nlp' }]);
});

test.each<[string, () => Promise<unknown>, object]>([
  [
    'a group that is there',
    () => lab.sagemaker.send(new CreateModelPackageGroupCommand({ ModelPackageGroupName: 'research-nlp-tiny' })),
    { name: 'ValidationException', message: expect.stringContaining('Model Package Group already exists') },
  ],
  [
    'a version of a group that is not there',
    () => lab.sagemaker.send(new CreateModelPackageCommand({ ModelPackageGroupName: 'nothing' })),
    { name: 'ValidationException', message: expect.stringContaining('does not exist') },
  ],
  [
    'tags of a version',
    () =>
      lab.sagemaker.send(
        new CreateModelPackageCommand({ ModelPackageGroupName: 'research-nlp-tiny', Tags: [{ Key: 'a', Value: 'b' }] }),
      ),
    { name: 'ValidationException' },
  ],
  [
    'a token with another request',
    () =>
      lab.sagemaker.send(
        new CreateModelPackageCommand({ ModelPackageGroupName: 'research-nlp-tiny', ClientToken: 'one' }),
      ),
    { name: 'ConflictException' },
  ],
])('fails: %s', async (_, call, error) => {
  await expect(call()).rejects.toMatchObject(error);
});
