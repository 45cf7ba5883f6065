import {
  DescribeProcessingJobCommand,
  type DescribeProcessingJobCommandOutput,
  DescribeTrainingJobCommand,
  type DescribeTrainingJobCommandOutput,
  type ListTrainingJobsCommandInput,
  paginateListProcessingJobs,
  paginateListTrainingJobs,
  type ResourceConfig,
  type SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { LIVE_JOB_STATUSES } from '../../core/catalog/job-statuses';
import { type JobInstances, quotaUsage, type Usage } from '../../core/quota';
import { eachInTurn } from './pace';
import { itemsOf } from './pages';

/**
 * ListTrainingJobs is limited to two requests per second per account, and the limit cannot be raised
 * (https://docs.aws.amazon.com/general/latest/gr/sagemaker.html; aws-solutions-library-samples/deepracer-on-aws issue 87). This is the
 * interval between pages; concurrent callers rely on the client's retries.
 */
const BETWEEN_LISTS_MS = 500;
/** Maximum number of concurrent Describe calls. */
const AT_ONCE = 4;

const LIVE = LIVE_JOB_STATUSES.map((StatusEquals) => ({ StatusEquals }));
const TRAINING: ListTrainingJobsCommandInput[] = [...LIVE, { WarmPoolStatusEquals: 'Available' }];

/**
 * Instances that live jobs and warm pools use now: List returns the job names, and one Describe call per job returns type and count.
 * @param sleep waits between two List calls
 */
export async function readUsage(
  client: SageMakerClient,
  sleep: (milliseconds: number) => Promise<unknown>,
): Promise<Usage> {
  const [training, processing] = await Promise.all([trainingJobs(client, sleep), processingJobs(client)]);
  return quotaUsage([...training, ...processing]);
}

async function trainingJobs(
  client: SageMakerClient,
  sleep: (milliseconds: number) => Promise<unknown>,
): Promise<JobInstances[]> {
  const names = new Set<string>();
  for (const [place, filter] of TRAINING.entries()) {
    if (place > 0) await sleep(BETWEEN_LISTS_MS);
    for await (const page of paginateListTrainingJobs({ client, pageSize: 100 }, filter)) {
      for (const { TrainingJobName } of page.TrainingJobSummaries ?? [])
        if (TrainingJobName) names.add(TrainingJobName);
      if (page.NextToken) await sleep(BETWEEN_LISTS_MS);
    }
  }
  return eachInTurn([...names], AT_ONCE, async (TrainingJobName) =>
    trainingInstances(await client.send(new DescribeTrainingJobCommand({ TrainingJobName }))),
  );
}

async function processingJobs(client: SageMakerClient): Promise<JobInstances[]> {
  const names: string[] = [];
  for (const filter of LIVE) {
    const pages = paginateListProcessingJobs({ client, pageSize: 100 }, filter);
    names.push(
      ...(await itemsOf(pages, (page) => page.ProcessingJobSummaries?.flatMap((job) => job.ProcessingJobName ?? []))),
    );
  }
  return eachInTurn(names, AT_ONCE, async (ProcessingJobName) =>
    processingInstances(await client.send(new DescribeProcessingJobCommand({ ProcessingJobName }))),
  );
}

const ENDED: readonly unknown[] = ['Completed', 'Failed', 'Stopped'];

/** Whether a training job is over. */
export const hasEnded = ({ TrainingJobStatus }: { TrainingJobStatus?: string }): boolean =>
  ENDED.includes(TrainingJobStatus);

/** The instances of a training job: those of its groups, otherwise those that the service selected or that were requested. */
export function trainingInstances(job: DescribeTrainingJobCommandOutput): JobInstances {
  const groups = job.ResourceConfig?.InstanceGroups?.map(instancesOf);
  return {
    kind: 'training',
    status: job.TrainingJobStatus ?? '',
    spot: job.EnableManagedSpotTraining ?? false,
    // Describe may return an empty list for a job without groups.
    instances: groups?.length ? groups : [instancesOf(job.ResourceConfig)],
    warmPoolStatus: job.WarmPoolStatus?.Status,
  };
}

const processingInstances = (job: DescribeProcessingJobCommandOutput): JobInstances => ({
  kind: 'processing',
  status: job.ProcessingJobStatus ?? '',
  spot: false,
  instances: [instancesOf(job.ProcessingResources?.ClusterConfig)],
});

type Cluster = Pick<
  ResourceConfig,
  'InstanceType' | 'InstanceCount' | 'SelectedInstanceType' | 'SelectedInstanceCount'
>;

const instancesOf = ({ InstanceType, InstanceCount, SelectedInstanceType, SelectedInstanceCount }: Cluster = {}) => ({
  instanceType: SelectedInstanceType ?? InstanceType ?? '',
  count: SelectedInstanceCount ?? InstanceCount ?? 0,
});
