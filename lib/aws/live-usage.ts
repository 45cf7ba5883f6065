import {
  DescribeProcessingJobCommand,
  DescribeTrainingJobCommand,
  type DescribeTrainingJobCommandOutput,
  paginateListProcessingJobs,
  paginateListTrainingJobs,
  type SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { type JobInstances, quotaUsage, type Usage } from '../quota';

/** What live jobs and warm pools hold now: List gives the names, one Describe a job gives type and count. */
export async function readUsage(client: SageMakerClient): Promise<Usage> {
  const [training, processing] = await Promise.all([trainingJobs(client), processingJobs(client)]);
  return quotaUsage([...training, ...processing]);
}

async function trainingJobs(client: SageMakerClient): Promise<JobInstances[]> {
  const names = new Set<string>();
  for (const filter of [
    { StatusEquals: 'InProgress' as const },
    { StatusEquals: 'Stopping' as const },
    { WarmPoolStatusEquals: 'Available' as const },
  ]) {
    for await (const page of paginateListTrainingJobs({ client, pageSize: 100 }, filter)) {
      for (const job of page.TrainingJobSummaries ?? []) if (job.TrainingJobName) names.add(job.TrainingJobName);
    }
  }
  return Promise.all(
    [...names].map(async (name) =>
      trainingInstances(await client.send(new DescribeTrainingJobCommand({ TrainingJobName: name }))),
    ),
  );
}

function trainingInstances(job: DescribeTrainingJobCommandOutput): JobInstances {
  const config = job.ResourceConfig;
  const groups = config?.InstanceGroups?.map((g) => ({
    instanceType: g.InstanceType as string,
    count: g.InstanceCount ?? 0,
  }));
  const type =
    (config as { SelectedInstanceType?: string } | undefined)?.SelectedInstanceType ?? config?.InstanceType ?? '';
  const count =
    (config as { SelectedInstanceCount?: number } | undefined)?.SelectedInstanceCount ?? config?.InstanceCount ?? 0;
  return {
    kind: 'training',
    status: job.TrainingJobStatus ?? '',
    spot: job.EnableManagedSpotTraining ?? false,
    instances: groups ?? [{ instanceType: type, count }],
    warmPoolStatus: job.WarmPoolStatus?.Status,
  };
}

async function processingJobs(client: SageMakerClient): Promise<JobInstances[]> {
  const names: string[] = [];
  for (const StatusEquals of ['InProgress', 'Stopping'] as const) {
    for await (const page of paginateListProcessingJobs({ client, pageSize: 100 }, { StatusEquals })) {
      for (const job of page.ProcessingJobSummaries ?? []) if (job.ProcessingJobName) names.push(job.ProcessingJobName);
    }
  }
  return Promise.all(
    names.map(async (name): Promise<JobInstances> => {
      const job = await client.send(new DescribeProcessingJobCommand({ ProcessingJobName: name }));
      const cluster = job.ProcessingResources?.ClusterConfig;
      return {
        kind: 'processing',
        status: job.ProcessingJobStatus ?? '',
        spot: false,
        instances: [{ instanceType: cluster?.InstanceType ?? '', count: cluster?.InstanceCount ?? 0 }],
      };
    }),
  );
}
