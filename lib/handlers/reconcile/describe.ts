import {
  DescribeProcessingJobCommand,
  type DescribeProcessingJobCommandOutput,
  DescribeTrainingJobCommand,
  type DescribeTrainingJobCommandOutput,
  ListTagsCommand,
  type SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import type { JobObservation, PresentJob } from '../../lifecycle/observed';
import type { Attempt, RunRecord } from '../../lifecycle/record';

/** What the service says about the job of an attempt. Never throws: an error is an observation too. */
export async function describeJob(
  sagemaker: SageMakerClient,
  record: RunRecord,
  attempt: Attempt,
): Promise<JobObservation> {
  try {
    const job =
      record.kind === 'processing' ? await processing(sagemaker, attempt) : await training(sagemaker, attempt);
    // Describe does not show tags; only an attempt whose job was never seen must ask whose it is.
    if (attempt.phase === 'created') return { ...job, identity: 'ours' };
    return { ...job, identity: await identityOf(sagemaker, job.arn, record, attempt) };
  } catch (error) {
    return isNotFound(error) ? { kind: 'absent' } : { kind: 'unreadable', error: describeError(error) };
  }
}

type Described = Omit<PresentJob, 'identity'>;

async function training(sagemaker: SageMakerClient, { jobName }: Attempt): Promise<Described> {
  return trainingJob(await sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName: jobName })));
}

async function processing(sagemaker: SageMakerClient, { jobName }: Attempt): Promise<Described> {
  return processingJob(await sagemaker.send(new DescribeProcessingJobCommand({ ProcessingJobName: jobName })));
}

function trainingJob(job: DescribeTrainingJobCommandOutput): Described {
  const step = job.FinalMetricDataList?.find((m) => m.MetricName === 'slipway:step')?.Value;
  return {
    kind: 'present',
    arn: job.TrainingJobArn ?? '',
    status: job.TrainingJobStatus ?? '',
    secondaryStatus: job.SecondaryStatus ?? '',
    failureReason: job.FailureReason ?? '',
    createdAt: job.CreationTime?.getTime() ?? 0,
    trainingStartedAt: job.TrainingStartTime?.getTime(),
    endedAt: job.TrainingEndTime?.getTime(),
    billableSeconds: job.BillableTimeInSeconds,
    lastStep: step,
  };
}

/** Processing jobs have no secondary status: it is told from their times. */
function processingJob(job: DescribeProcessingJobCommandOutput): Described {
  const started = job.ProcessingStartTime?.getTime();
  const status = job.ProcessingJobStatus ?? '';
  return {
    kind: 'present',
    arn: job.ProcessingJobArn ?? '',
    status,
    secondaryStatus: status === 'InProgress' ? (started === undefined ? 'Starting' : 'Training') : status,
    failureReason: job.FailureReason ?? job.ExitMessage ?? '',
    createdAt: job.CreationTime?.getTime() ?? 0,
    trainingStartedAt: started,
    endedAt: job.ProcessingEndTime?.getTime(),
  };
}

async function identityOf(
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

/** SageMaker answers a missing training job with a ValidationException, a missing processing job likewise. */
function isNotFound(error: unknown): boolean {
  const { name, message } = error as Error;
  if (name === 'ResourceNotFound' || name === 'ResourceNotFoundException') return true;
  return name === 'ValidationException' && /not found|could not find|does not exist/i.test(message);
}

export const describeError = (error: unknown): string => `${(error as Error).name}: ${(error as Error).message}`;
