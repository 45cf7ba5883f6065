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
import { holdsIf, type Probe, probe, unknown } from '../probe';
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

const afterJob = (
  kind: JobKind,
  assumption: string,
  expected: string,
  judge: (job: EndedJob, world: TrainWorld) => ReturnType<Probe<TrainWorld>['run']>,
): Probe<TrainWorld> => probe(assumption, expected, async (world) => judge(await world.job(kind), world));

/** Measures the time until a read returns the newly created job, which ends by itself. */
const readAfterWrite = (
  assumption: string,
  atMost: number,
  what: string,
  isDone: (world: TrainWorld, name: string) => Promise<boolean>,
): Probe<TrainWorld> =>
  probe(assumption, `${what} within ${atMost} s of the response of CreateTrainingJob`, async (world) => {
    const since = await world.created('deadline');
    const name = jobName(world.place, 'deadline');
    const lag = await secondsUntil(world, since, 3 * atMost, () => isDone(world, name));
    if (lag === undefined) return holdsIf(false, `not within ${3 * atMost} s`);
    return holdsIf(lag <= atMost, `${lag.toFixed(1)} s`);
  });

const describeJob = (world: TrainWorld, TrainingJobName: string) =>
  world.sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName })).catch(() => undefined);

const textOf = (error: Error | undefined, otherwise: string): string =>
  error ? `${error.name}: ${error.message}` : otherwise;

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

const FAILURE = /^AlgorithmError: \{"slipway":1,.*planned crash"\}.*exit code: 7/s;
const STATES = ['Starting', 'Downloading', 'Training', 'Uploading', 'Completed'];

/** Level `train`: a few small CPU jobs with the team's execution role. */
export const TRAIN_PROBES: readonly Probe<TrainWorld>[] = [
  readAfterWrite('describe-after-create', READ_LAG_SECONDS, 'Describe finds the job', async (world, name) =>
    Boolean(await describeJob(world, name)),
  ),
  readAfterWrite('list-after-create', LIST_LAG_SECONDS, 'ListTrainingJobs shows the job', async (world, name) => {
    const listed = await world.sagemaker.send(new ListTrainingJobsCommand({ NameContains: name }));
    return (listed.TrainingJobSummaries ?? []).some((job) => job.TrainingJobName === name);
  }),
  readAfterWrite('tags-after-create', READ_LAG_SECONDS, 'ListTags returns all tags', async (world, name) => {
    const ResourceArn = (await describeJob(world, name))?.TrainingJobArn;
    if (!ResourceArn) return false;
    const { Tags = [] } = await world.sagemaker.send(new ListTagsCommand({ ResourceArn }));
    const sent = jobRequest('deadline', world.place).Tags ?? [];
    return sent.every((tag) => Tags.some((t) => t.Key === tag.Key && t.Value === tag.Value));
  }),
  afterJob('denied', 'name-unique', 'ResourceInUse for the name of an ended job', async (_, world) => {
    const error = await errorOf(world.sagemaker.send(new CreateTrainingJobCommand(jobRequest('denied', world.place))));
    return holdsIf(error?.name === 'ResourceInUse', textOf(error, 'a second job was created'));
  }),
  afterJob('denied', 'stop-twice', 'ValidationException for a job that has ended', async (_, world) => {
    const TrainingJobName = jobName(world.place, 'denied');
    const error = await errorOf(world.sagemaker.send(new StopTrainingJobCommand({ TrainingJobName })));
    return holdsIf(error?.name === 'ValidationException', textOf(error, 'the call succeeded'));
  }),
  probe('limit-exceeded-text', 'ResourceLimitExceeded with the name of the quota', async (world) => {
    const type = await typeWithoutQuota(world);
    if (!type) return unknown('all accelerated types have a quota above 0 in this account');
    const request = jobRequest('deadline', { ...world.place, instanceType: type });
    const command = new CreateTrainingJobCommand({ ...request, TrainingJobName: `${request.TrainingJobName}-limit` });
    const error = await errorOf(world.sagemaker.send(command));
    const { name } = instanceQuota(type, 'training');
    return holdsIf(
      error?.name === 'ResourceLimitExceeded' && error.message.includes(name),
      textOf(error, `a job on ${type} was created`),
      `ResourceLimitExceeded with the name of the quota "${name}"`,
    );
  }),
  afterJob('crash', 'request-echoed', 'the fields as they were sent', ({ description: job }, world) => {
    const sent = jobRequest('crash', world.place);
    const fields: [name: string, is: unknown, was: unknown][] = [
      ['RetryStrategy', job.RetryStrategy, sent.RetryStrategy],
      ['Environment', job.Environment, sent.Environment],
      ['StoppingCondition', job.StoppingCondition?.MaxRuntimeInSeconds, sent.StoppingCondition?.MaxRuntimeInSeconds],
      ['CheckpointConfig', job.CheckpointConfig?.S3Uri, sent.CheckpointConfig?.S3Uri],
    ];
    const wrong = fields.flatMap(([name, is, was]) => (JSON.stringify(is) === JSON.stringify(was) ? [] : [name]));
    return holdsIf(wrong.length === 0, wrong.length === 0 ? 'all of them' : `different: ${wrong.join(', ')}`);
  }),
  afterJob('crash', 'failure-text', 'AlgorithmError: <failure file>, exit code: 7', (job) =>
    holdsIf(FAILURE.test(reason(job)), `${stateOf(job)}: ${reason(job)}`),
  ),
  afterJob('denied', 'data-denied-text', 'Failed, ClientError that mentions access', (job) =>
    holdsIf(
      /^ClientError/.test(reason(job)) && /access|denied|permission|forbidden|403|not authorized/i.test(reason(job)),
      `${stateOf(job)}: ${reason(job)}`,
    ),
  ),
  afterJob('deadline', 'max-runtime-state', 'Stopped / MaxRuntimeExceeded', (job) =>
    holdsIf(stateOf(job) === 'Stopped / MaxRuntimeExceeded', stateOf(job)),
  ),
  afterJob('resume', 'secondary-transitions', STATES.join(', '), ({ description: job }) => {
    const states = (job.SecondaryStatusTransitions ?? []).map(({ Status = '' }): string => Status);
    return holdsIf(
      STATES.every((state) => states.includes(state)),
      states.join(', '),
    );
  }),
  afterJob(
    'resume',
    'billable-seconds',
    'BillableTimeInSeconds within a minute of TrainingStartTime to TrainingEndTime',
    ({ description: { BillableTimeInSeconds: billed, TrainingStartTime: from, TrainingEndTime: to } }) => {
      if (billed === undefined || !from || !to) return unknown('Describe returned no such times');
      const wall = (to.getTime() - from.getTime()) / SECONDS;
      return holdsIf(Math.abs(billed - wall) <= 60, `${billed} s billed, ${wall.toFixed(0)} s long`);
    },
  ),
  afterJob('spot', 'spot-billable', 'fewer billed than training seconds', (job) => {
    const { BillableTimeInSeconds: billed, TrainingTimeInSeconds: trained, TrainingJobStatus } = job.description;
    if (TrainingJobStatus !== 'Completed') return unknown(`${stateOf(job)}: ${reason(job)}`);
    if (billed === undefined || trained === undefined) return unknown('Describe returned no such times');
    return holdsIf(billed < trained, `${billed} s billed of ${trained} s`);
  }),
  afterJob('spot', 'name-after-delete', 'the name of a deleted job can be used again', async (_, world) => {
    const TrainingJobName = jobName(world.place, 'spot');
    await world.sagemaker.send(new DeleteTrainingJobCommand({ TrainingJobName }));
    const gone = await secondsUntil(world, world.now(), 120, async () => {
      const error = await errorOf(world.sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName })));
      return error !== undefined;
    });
    if (gone === undefined) return unknown('Describe still finds the job after 120 s');
    const error = await errorOf(world.sagemaker.send(new CreateTrainingJobCommand(jobRequest('spot', world.place))));
    return holdsIf(error === undefined, textOf(error, `deleted after ${gone.toFixed(0)} s, then accepted`));
  }),
  afterJob('facts', 'trust-source-arn', 'a job starts with the execution role', (job) =>
    holdsIf(job.description.TrainingStartTime !== undefined, stateOf(job)),
  ),
  ...CONTAINER_PROBES,
];
