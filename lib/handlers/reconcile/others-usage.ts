import {
  DescribeTrainingJobCommand,
  type DescribeTrainingJobCommandOutput,
  paginateListTrainingJobs,
  type SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { type JobInstances, quotaUsage } from '../../quota';

/** What a job asks for never changes while it lives. One cache a client, which dies with the process. */
const cacheOf = new WeakMap<SageMakerClient, Map<string, JobInstances>>();

/**
 * What training jobs that are not ours hold, by quota name. One list, and one Describe per job that was not seen before.
 * @param ours names of jobs that the queue counts itself
 */
export async function othersUsage(sagemaker: SageMakerClient, ours: ReadonlySet<string>): Promise<Map<string, number>> {
  const jobs: JobInstances[] = [];
  const pages = paginateListTrainingJobs({ client: sagemaker }, { StatusEquals: 'InProgress', MaxResults: 100 });
  for await (const page of pages) {
    for (const { TrainingJobName: name } of page.TrainingJobSummaries ?? []) {
      if (name && !ours.has(name)) jobs.push(await shapeOf(sagemaker, name));
    }
  }
  return quotaUsage(jobs);
}

async function shapeOf(sagemaker: SageMakerClient, name: string): Promise<JobInstances> {
  const shapes = cacheOf.get(sagemaker) ?? new Map<string, JobInstances>();
  cacheOf.set(sagemaker, shapes);
  const known = shapes.get(name);
  if (known) return known;
  const shape = jobInstances(await sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName: name })));
  shapes.set(name, shape);
  return shape;
}

function jobInstances(job: DescribeTrainingJobCommandOutput): JobInstances {
  const { InstanceGroups, InstanceType, InstanceCount, SelectedInstanceType, SelectedInstanceCount } =
    job.ResourceConfig ?? {};
  const groups = InstanceGroups?.map((g) => ({ instanceType: g.InstanceType ?? '', count: g.InstanceCount ?? 0 }));
  const single = {
    instanceType: SelectedInstanceType ?? InstanceType ?? '',
    count: SelectedInstanceCount ?? InstanceCount ?? 0,
  };
  return {
    kind: 'training',
    status: 'InProgress',
    spot: job.EnableManagedSpotTraining ?? false,
    instances: groups && groups.length > 0 ? groups : [single],
  };
}
