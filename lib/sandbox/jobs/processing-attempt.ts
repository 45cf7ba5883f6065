import { JOB_LOG_GROUPS } from '../../core/contracts/job-log-groups';
import type { ProcessingJob } from '../sagemaker/processing-job';
import { Attempt } from './attempt';
import type { Cluster } from './cluster';
import { outputFolder } from './files/input-source';
import { containerCommand } from './instances/container-command';
import { resourceConfig } from './instances/instance-files';
import type { JobServices } from './job-services';

/** An attempt of a processing job, according to the container contract of SageMaker processing. */
export function processingAttempt(
  job: ProcessingJob,
  cluster: Cluster,
  services: JobServices<ProcessingJob>,
  onLine: (line: string) => void,
): Attempt {
  const { request } = job;
  const json = (value: object) => `${JSON.stringify(value)}\n`;
  const app = request.AppSpecification;
  return new Attempt(services.host, {
    jobName: job.name,
    region: job.region,
    roleArn: request.RoleArn ?? '',
    cluster,
    command: containerCommand(
      {
        image: app?.ImageUri ?? '',
        entrypoint: app?.ContainerEntrypoint,
        arguments: app?.ContainerArguments,
        defaultArguments: [],
      },
      services.imageCommand,
    ),
    environment: { ...request.Environment },
    files: (host) => ({
      'processingjobconfig.json': json({ ProcessingJobArn: job.arn, ...request }),
      'resourceconfig.json': json(resourceConfig(cluster, host)),
    }),
    configFolder: 'config',
    folders: ['processing/input', 'output', ...(request.ProcessingOutputConfig?.Outputs ?? []).map(outputFolder)],
    networkIsolation: request.NetworkConfig?.EnableNetworkIsolation === true,
    logGroup: JOB_LOG_GROUPS.processing,
    onLine: (_, line) => onLine(line),
  });
}
