import {
  DescribeProcessingJobCommand,
  type DescribeProcessingJobCommandOutput,
  DescribeTrainingJobCommand,
  type DescribeTrainingJobCommandOutput,
  ListTagsCommand,
  type ResourceConfig,
  type SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { LIVE_JOB_STATUSES } from '../../../core/catalog/job-statuses';
import { pausesOf } from '../../../core/lifecycle/accounting/pauses';
import type { JobObservation } from '../../../core/lifecycle/observed';
import type { Attempt, PresentJob, RunRecord } from '../../../core/lifecycle/record';
import { hasEnded } from '../../../shared/aws/live-usage';
import { describeError, isJobNotFound } from '../../shared/errors';

/** What the service reports about the job of an attempt. Never throws: an error is an observation too. */
export async function describeJob(
  sagemaker: SageMakerClient,
  record: RunRecord,
  attempt: Attempt,
): Promise<JobObservation> {
  try {
    const { environment, ...job } = await describe(sagemaker, record, attempt);
    // Describe returns the variables that every request of ours sets (lib/core/job) at once, while tags may be delayed. A run file may set them
    // itself; then the tags decide. The owner is checked only until the job has been adopted.
    const { SLIPWAY_RUN_ID: runId, SLIPWAY_ATTEMPT: number } = environment;
    const isOurs = attempt.phase === 'created' || (runId === record.runId && number === String(attempt.number));
    return { ...job, identity: isOurs ? 'ours' : await identityByTags(sagemaker, job.arn, record, attempt) };
  } catch (error) {
    return isJobNotFound(error) ? { kind: 'absent' } : { kind: 'unreadable', error: describeError(error) };
  }
}

const LIVE: readonly string[] = LIVE_JOB_STATUSES;

export const isLiveJob = (job: JobObservation): job is PresentJob =>
  job.kind === 'present' && LIVE.includes(job.status);

/** A job as Describe returns it; `environment` contains the variables of its container. */
type Described = Omit<PresentJob, 'identity'> & { environment: Readonly<Record<string, string>> };

async function describe(sagemaker: SageMakerClient, { kind }: RunRecord, { jobName }: Attempt): Promise<Described> {
  const job =
    kind === 'processing'
      ? processingJob(await sagemaker.send(new DescribeProcessingJobCommand({ ProcessingJobName: jobName })))
      : trainingJob(await sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName: jobName })));
  // Every job has these; an answer without them says nothing about the job, although the call succeeded.
  if (job.arn !== '' && job.status !== '' && job.createdAt > 0) return job;
  throw new Error('the answer names no job, status or time of creation');
}

function trainingJob(job: DescribeTrainingJobCommandOutput): Described {
  const transitions = transitionsOf(job);
  return {
    kind: 'present',
    arn: job.TrainingJobArn ?? '',
    status: job.TrainingJobStatus ?? '',
    secondaryStatus: job.SecondaryStatus ?? '',
    failureReason: job.FailureReason ?? '',
    createdAt: job.CreationTime?.getTime() ?? 0,
    trainingStartedAt: job.TrainingStartTime?.getTime(),
    // TrainingStartTime is that of the first start; a start after an interruption is only in the status transitions.
    trainingSince: transitions.findLast(({ status }) => status === 'Training')?.at,
    pauses: pausesOf(transitions),
    selected: selectedInstances(job.ResourceConfig),
    endedAt: endOf(job),
    billableSeconds: hasEnded(job) ? job.BillableTimeInSeconds : undefined,
    warmPool: warmPoolOf(job),
    lastStep: job.FinalMetricDataList?.find((m) => m.MetricName === 'slipway:step')?.Value,
    environment: job.Environment ?? {},
  };
}

/** A job that never got its instances has no TrainingEndTime. */
function endOf(job: DescribeTrainingJobCommandOutput): number | undefined {
  const end = job.TrainingEndTime ?? (hasEnded(job) ? job.LastModifiedTime : undefined);
  return end?.getTime();
}

/** Secondary statuses with their starts, oldest first. */
const transitionsOf = ({ SecondaryStatusTransitions = [] }: DescribeTrainingJobCommandOutput) =>
  SecondaryStatusTransitions.flatMap(({ Status: status = '', StartTime }) =>
    StartTime ? [{ status, at: StartTime.getTime() }] : [],
  ).sort((a, b) => a.at - b.at);

type Selection = Pick<ResourceConfig, 'SelectedInstanceCount' | 'InstanceCount'> & { SelectedInstanceType?: string };

function selectedInstances(config: Selection | undefined): PresentJob['selected'] {
  const { SelectedInstanceType: instanceType, SelectedInstanceCount, InstanceCount } = config ?? {};
  const instanceCount = SelectedInstanceCount ?? InstanceCount;
  return instanceType && instanceCount ? { instanceType, instanceCount } : undefined;
}

function warmPoolOf({ WarmPoolStatus }: DescribeTrainingJobCommandOutput): PresentJob['warmPool'] {
  const { Status, ResourceRetainedBillableTimeInSeconds: retainedSeconds } = WarmPoolStatus ?? {};
  if (!Status) return undefined;
  const isKept = Status === 'Available' || Status === 'InUse';
  // Without the time, it is not known how long the pool was kept.
  if (!isKept && retainedSeconds === undefined) return undefined;
  return { isKept, retainedSeconds: retainedSeconds ?? 0 };
}

/** Processing jobs have no secondary status: it is derived from their timestamps. */
function processingJob(job: DescribeProcessingJobCommandOutput): Described {
  const started = job.ProcessingStartTime?.getTime();
  const status = job.ProcessingJobStatus ?? '';
  return {
    kind: 'present',
    arn: job.ProcessingJobArn ?? '',
    status,
    secondaryStatus: status === 'InProgress' ? (started === undefined ? 'Starting' : 'Training') : status,
    selected: selectedInstances(job.ProcessingResources?.ClusterConfig),
    failureReason: job.FailureReason ?? job.ExitMessage ?? '',
    createdAt: job.CreationTime?.getTime() ?? 0,
    trainingStartedAt: started,
    endedAt: job.ProcessingEndTime?.getTime(),
    environment: job.Environment ?? {},
  };
}

async function identityByTags(
  sagemaker: SageMakerClient,
  arn: string,
  record: RunRecord,
  attempt: Attempt,
): Promise<PresentJob['identity']> {
  try {
    const { Tags = [] } = await sagemaker.send(new ListTagsCommand({ ResourceArn: arn }));
    const tags = new Map(Tags.map((t) => [t.Key, t.Value]));
    const isOurs =
      tags.get('slipway:environment') === record.environment &&
      tags.get('slipway:run') === record.runId &&
      tags.get('slipway:attempt') === String(attempt.number);
    return isOurs ? 'ours' : 'foreign';
  } catch {
    return 'unread';
  }
}
