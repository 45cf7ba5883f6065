import {
  CreateTrainingJobCommand,
  type CreateTrainingJobCommandInput,
  DescribeTrainingJobCommand,
  type DescribeTrainingJobCommandOutput,
  ListTagsCommand,
  ListTrainingJobsCommand,
  SageMakerClient,
  StopTrainingJobCommand,
  UpdateTrainingJobCommand,
} from '@aws-sdk/client-sagemaker';
import { mockClient } from '../../support/mocked-clients';

export interface FakeJob {
  request: CreateTrainingJobCommandInput;
  status: string;
  secondaryStatus: string;
  failureReason?: string;
  createdAt: number;
  trainingStartedAt?: number;
  endedAt?: number;
  warmPool?: DescribeTrainingJobCommandOutput['WarmPoolStatus'];
}

/** An error as the SDK throws it. */
export function serviceError(name: string, message: string, httpStatusCode?: number): Error {
  return Object.assign(new Error(message), { name, $metadata: { httpStatusCode } });
}

/** What Describe answers about a job. */
export function describedJob(TrainingJobName: string, job: FakeJob) {
  const dateOf = (at?: number) => (at === undefined ? undefined : new Date(at));
  return {
    TrainingJobName,
    TrainingJobArn: arnOf(TrainingJobName),
    TrainingJobStatus: job.status,
    SecondaryStatus: job.secondaryStatus,
    FailureReason: job.failureReason,
    CreationTime: dateOf(job.createdAt),
    TrainingStartTime: dateOf(job.trainingStartedAt),
    TrainingEndTime: dateOf(job.endedAt),
    ResourceConfig: job.request.ResourceConfig,
    Environment: job.request.Environment,
    EnableNetworkIsolation: job.request.EnableNetworkIsolation,
    RemoteDebugConfig: job.request.RemoteDebugConfig,
    WarmPoolStatus: job.warmPool,
  };
}

type CreateFault = 'refuse-before' | 'lose-after' | { error: Error };

/** Training jobs as the service keeps them: names unique until deleted, stop only in flight, Describe by name. */
export function fakeSageMaker(now: () => number) {
  const jobs = new Map<string, FakeJob>();
  const faults: CreateFault[] = [];
  const calls = { create: 0, stop: 0, describe: 0 };
  const mock = mockClient(SageMakerClient);
  const notFound = () => serviceError('ValidationException', 'Requested resource not found.', 400);

  mock.on(CreateTrainingJobCommand).callsFake((input: CreateTrainingJobCommandInput) => {
    calls.create += 1;
    const fault = faults.shift();
    if (fault === 'refuse-before') throw serviceError('TimeoutError', 'socket hang up');
    if (typeof fault === 'object') throw fault.error;
    const name = input.TrainingJobName ?? '';
    if (jobs.has(name)) throw serviceError('ResourceInUse', `Training job names must be unique: ${name}`, 400);
    jobs.set(name, { request: input, status: 'InProgress', secondaryStatus: 'Starting', createdAt: now() });
    if (fault === 'lose-after') throw serviceError('TimeoutError', 'socket hang up');
    return { TrainingJobArn: arnOf(name) };
  });
  mock.on(DescribeTrainingJobCommand).callsFake(({ TrainingJobName }) => {
    calls.describe += 1;
    const job = jobs.get(TrainingJobName);
    if (!job) throw notFound();
    return describedJob(TrainingJobName, job);
  });
  // As https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateTrainingJob.html says of RemoteDebugConfig, and
  // https://docs.aws.amazon.com/sagemaker/latest/dg/train-warm-pools-how-to-use.html of a keep-alive period of 0.
  mock.on(UpdateTrainingJobCommand).callsFake(({ TrainingJobName, RemoteDebugConfig, ResourceConfig }) => {
    const job = jobs.get(TrainingJobName);
    if (ResourceConfig?.KeepAlivePeriodInSeconds === 0) {
      if (job?.warmPool?.Status !== 'Available') throw serviceError('ValidationException', 'No warm pool', 400);
      const kept = Math.round((now() - (job.endedAt ?? now())) / 1000);
      job.warmPool = { Status: 'Terminated', ResourceRetainedBillableTimeInSeconds: kept };
      return { TrainingJobArn: arnOf(TrainingJobName) };
    }
    if (!job || !['Downloading', 'Training'].includes(job.secondaryStatus))
      throw serviceError('ValidationException', 'The job is neither Downloading nor Training', 400);
    job.request = { ...job.request, RemoteDebugConfig };
    return { TrainingJobArn: arnOf(TrainingJobName) };
  });
  mock.on(StopTrainingJobCommand).callsFake(({ TrainingJobName }) => {
    calls.stop += 1;
    const job = jobs.get(TrainingJobName);
    if (job?.status !== 'InProgress') {
      const text = `The request was rejected because the training job is in status ${job?.status}.`;
      throw serviceError('ValidationException', text, 400);
    }
    Object.assign(job, { status: 'Stopping', secondaryStatus: 'Stopping' });
    return {};
  });
  mock.on(ListTagsCommand).callsFake(({ ResourceArn }) => ({
    Tags: jobs.get(ResourceArn.split('/')[1])?.request.Tags ?? [],
  }));
  mock.on(ListTrainingJobsCommand).callsFake(() => ({
    TrainingJobSummaries: [...jobs]
      .filter(([, job]) => job.status === 'InProgress')
      .map(([TrainingJobName]) => ({ TrainingJobName })),
  }));

  return {
    client: new SageMakerClient({ region: 'us-west-2' }),
    mock,
    jobs,
    calls,
    failCreate: (...planned: CreateFault[]) => faults.push(...planned),
    job(name: string): FakeJob {
      const found = jobs.get(name);
      if (!found) throw new Error(`no job ${name}; there are ${[...jobs.keys()].join(', ')}`);
      return found;
    },
    live: () => [...jobs.values()].filter((j) => j.status === 'InProgress' || j.status === 'Stopping').length,
  };
}

const arnOf = (name: string): string => `arn:aws:sagemaker:us-west-2:111122223333:training-job/${name}`;
