import {
  CreateTrainingJobCommand,
  DeleteTrainingJobCommand,
  DescribeTrainingJobCommand,
  ListTagsCommand,
  ListTrainingJobsCommand,
  StopTrainingJobCommand,
} from '@aws-sdk/client-sagemaker';
import { GetServiceQuotaCommand } from '@aws-sdk/client-service-quotas';
import { INSTANCE_QUOTA_CODES, instanceQuota } from '../../../../core/catalog/quotas';
import { holdsIf, type Probe, unknown } from '../probe';
import { type JobKind, jobName, jobRequest } from '../train/train-jobs';
import type { EndedJob, TrainWorld } from '../train/train-world';
import { CONTAINER_PROBES } from './train-container';

const SECONDS = 1000;

/** Maximum delay of reads after a write. */
const READ_LAG_SECONDS = 10;
const LIST_LAG_SECONDS = 60;

const errorOf = (call: Promise<unknown>): Promise<Error | undefined> =>
  call.then(
    () => undefined,
    (error: Error) => error,
  );

/** Seconds from `since` until `isDone` returns true; undefined after `patience` seconds. */
async function secondsUntil(
  world: TrainWorld,
  since: number,
  patience: number,
  isDone: () => Promise<boolean>,
): Promise<number | undefined> {
  while (world.now() - since < patience * SECONDS) {
    if (await isDone()) return (world.now() - since) / SECONDS;
    await world.sleep(500);
  }
  return undefined;
}

const reason = ({ description }: EndedJob) => description.FailureReason ?? '';

const stateOf = ({ description: { TrainingJobStatus, SecondaryStatus } }: EndedJob) =>
  `${TrainingJobStatus} / ${SecondaryStatus}`;

/** Waits for a job and evaluates its result. */
const afterJob = (
  assumption: string,
  kind: JobKind,
  judge: (job: EndedJob, world: TrainWorld) => ReturnType<typeof holdsIf> | Promise<ReturnType<typeof holdsIf>>,
): Probe<TrainWorld> => ({
  assumption,
  run: async (world) => judge(await world.job(kind), world),
});

/** Measures the time until a read returns the newly created job, which ends by itself. */
const readAfterWrite = (
  assumption: string,
  atMost: number,
  what: string,
  isDone: (world: TrainWorld, name: string) => Promise<boolean>,
): Probe<TrainWorld> => ({
  assumption,
  async run(world) {
    const expected = `${what} within ${atMost} s of the response of CreateTrainingJob`;
    const since = await world.created('deadline');
    const name = jobName(world.place, 'deadline');
    const lag = await secondsUntil(world, since, 3 * atMost, () => isDone(world, name));
    return holdsIf(
      lag !== undefined && lag <= atMost,
      expected,
      lag === undefined ? `not within ${3 * atMost} s` : `${lag.toFixed(1)} s`,
    );
  },
});

const describeJob = (world: TrainWorld, TrainingJobName: string) =>
  world.sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName })).catch(() => undefined);

const READ_AFTER_WRITE: readonly Probe<TrainWorld>[] = [
  readAfterWrite('describe-after-create', READ_LAG_SECONDS, 'Describe finds the job', async (world, name) =>
    Boolean(await describeJob(world, name)),
  ),
  readAfterWrite(
    'list-after-create',
    LIST_LAG_SECONDS,
    'ListTrainingJobs shows the job',
    async (world, NameContains) => {
      const { TrainingJobSummaries = [] } = await world.sagemaker.send(new ListTrainingJobsCommand({ NameContains }));
      return TrainingJobSummaries.some((job) => job.TrainingJobName === NameContains);
    },
  ),
  readAfterWrite('tags-after-create', READ_LAG_SECONDS, 'ListTags returns all tags', async (world, name) => {
    const ResourceArn = (await describeJob(world, name))?.TrainingJobArn;
    if (!ResourceArn) return false;
    const { Tags = [] } = await world.sagemaker.send(new ListTagsCommand({ ResourceArn }));
    const sent = jobRequest('deadline', world.place).Tags ?? [];
    return sent.every((tag) => Tags.some((t) => t.Key === tag.Key && t.Value === tag.Value));
  }),
];

const nameUnique = afterJob('name-unique', 'denied', async (_, world) => {
  const expected = 'ResourceInUse for the name of an ended job';
  const error = await errorOf(world.sagemaker.send(new CreateTrainingJobCommand(jobRequest('denied', world.place))));
  return holdsIf(
    error?.name === 'ResourceInUse',
    expected,
    error ? `${error.name}: ${error.message}` : 'a second job was created',
  );
});

const stopTwice = afterJob('stop-twice', 'denied', async (_, world) => {
  const expected = 'ValidationException for a job that has ended';
  const TrainingJobName = jobName(world.place, 'denied');
  const error = await errorOf(world.sagemaker.send(new StopTrainingJobCommand({ TrainingJobName })));
  return holdsIf(
    error?.name === 'ValidationException',
    expected,
    error ? `${error.name}: ${error.message}` : 'the call succeeded',
  );
});

/** An accelerated type with a quota of 0, so that a request costs nothing. */
async function typeWithoutQuota(world: TrainWorld): Promise<string | undefined> {
  const candidates = Object.keys(INSTANCE_QUOTA_CODES).filter((type) => /^ml\.p[3-6]/.test(type));
  for (const type of candidates) {
    const QuotaCode = instanceQuota(type, 'training').code;
    const answer = await world.quotas
      .send(new GetServiceQuotaCommand({ ServiceCode: 'sagemaker', QuotaCode }))
      .catch(() => undefined);
    if (answer?.Quota?.Value === 0) return type;
  }
  return undefined;
}

const limitText: Probe<TrainWorld> = {
  assumption: 'limit-exceeded-text',
  async run(world) {
    const type = await typeWithoutQuota(world);
    const expected = 'ResourceLimitExceeded with the name of the quota';
    if (!type) return unknown(expected, 'all accelerated types have a quota above 0 in this account');
    const request = jobRequest('deadline', { ...world.place, instanceType: type });
    const error = await errorOf(
      world.sagemaker.send(
        new CreateTrainingJobCommand({ ...request, TrainingJobName: `${request.TrainingJobName}-limit` }),
      ),
    );
    const name = instanceQuota(type, 'training').name;
    const seen = error ? `${error.name}: ${error.message}` : `a job on ${type} was created`;
    return holdsIf(
      error?.name === 'ResourceLimitExceeded' && error.message.includes(name),
      `${expected} "${name}"`,
      seen,
    );
  },
};

const requestEchoed = afterJob('request-echoed', 'crash', ({ description: job }, world) => {
  const sent = jobRequest('crash', world.place);
  const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
  const wrong = [
    !same(job.RetryStrategy, sent.RetryStrategy) && 'RetryStrategy',
    !same(job.Environment, sent.Environment) && 'Environment',
    job.StoppingCondition?.MaxRuntimeInSeconds !== sent.StoppingCondition?.MaxRuntimeInSeconds && 'StoppingCondition',
    job.CheckpointConfig?.S3Uri !== sent.CheckpointConfig?.S3Uri && 'CheckpointConfig',
  ].filter(Boolean);
  return holdsIf(
    wrong.length === 0,
    'the fields as they were sent',
    wrong.length === 0 ? 'all of them' : `different: ${wrong.join(', ')}`,
  );
});

const FAILURE = /^AlgorithmError: \{"slipway":1,.*planned crash"\}.*exit code: 7/s;

const failureText = afterJob('failure-text', 'crash', (job) =>
  holdsIf(FAILURE.test(reason(job)), 'AlgorithmError: <failure file>, exit code: 7', `${stateOf(job)}: ${reason(job)}`),
);

const deniedText = afterJob('data-denied-text', 'denied', (job) =>
  holdsIf(
    /^ClientError/.test(reason(job)) && /access|denied|permission|forbidden|403|not authorized/i.test(reason(job)),
    'Failed, ClientError that mentions access',
    `${stateOf(job)}: ${reason(job)}`,
  ),
);

const maxRuntime = afterJob('max-runtime-state', 'deadline', (job) =>
  holdsIf(stateOf(job) === 'Stopped / MaxRuntimeExceeded', 'Stopped / MaxRuntimeExceeded', stateOf(job)),
);

const transitions = afterJob('secondary-transitions', 'resume', ({ description: job }) => {
  const states = (job.SecondaryStatusTransitions ?? []).map(({ Status = '' }) => Status);
  const seen = states.join(', ');
  const complete = ['Starting', 'Downloading', 'Training', 'Uploading', 'Completed'].every((s) =>
    states.includes(s as never),
  );
  return holdsIf(complete, 'Starting, Downloading, Training, Uploading, Completed', seen);
});

const billable = afterJob('billable-seconds', 'resume', ({ description: job }) => {
  const { BillableTimeInSeconds: billed, TrainingStartTime: from, TrainingEndTime: to } = job;
  const expected = 'BillableTimeInSeconds within a minute of TrainingStartTime to TrainingEndTime';
  if (billed === undefined || !from || !to) return unknown(expected, 'Describe returned no such times');
  const wall = (to.getTime() - from.getTime()) / SECONDS;
  return holdsIf(Math.abs(billed - wall) <= 60, expected, `${billed} s billed, ${wall.toFixed(0)} s long`);
});

const spotBillable = afterJob('spot-billable', 'spot', (job) => {
  const { BillableTimeInSeconds: billed, TrainingTimeInSeconds: trained, TrainingJobStatus } = job.description;
  const expected = 'fewer billed than training seconds';
  if (TrainingJobStatus !== 'Completed') return unknown(expected, `${stateOf(job)}: ${reason(job)}`);
  if (billed === undefined || trained === undefined) return unknown(expected, 'Describe returned no such times');
  return holdsIf(billed < trained, expected, `${billed} s billed of ${trained} s`);
});

const nameAfterDelete = afterJob('name-after-delete', 'spot', async (_, world) => {
  const expected = 'the name of a deleted job can be used again';
  const TrainingJobName = jobName(world.place, 'spot');
  await world.sagemaker.send(new DeleteTrainingJobCommand({ TrainingJobName }));
  const gone = await secondsUntil(world, world.now(), 120, async () => {
    const error = await errorOf(world.sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName })));
    return error !== undefined;
  });
  if (gone === undefined) return unknown(expected, 'Describe still finds the job after 120 s');
  const error = await errorOf(world.sagemaker.send(new CreateTrainingJobCommand(jobRequest('spot', world.place))));
  return holdsIf(
    error === undefined,
    expected,
    error ? `${error.name}: ${error.message}` : `deleted after ${gone.toFixed(0)} s, then accepted`,
  );
});

const trustSourceArn = afterJob('trust-source-arn', 'facts', (job) =>
  holdsIf(job.description.TrainingStartTime !== undefined, 'a job starts with the execution role', stateOf(job)),
);

/** Level `train`: a few small CPU jobs with the team's execution role. */
export const TRAIN_PROBES: readonly Probe<TrainWorld>[] = [
  ...READ_AFTER_WRITE,
  nameUnique,
  stopTwice,
  limitText,
  requestEchoed,
  failureText,
  deniedText,
  maxRuntime,
  transitions,
  billable,
  spotBillable,
  nameAfterDelete,
  trustSourceArn,
  ...CONTAINER_PROBES,
];
