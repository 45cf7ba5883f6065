import { JOB_LOG_GROUPS } from '../../core/contracts/job-log-groups';
import type { TrainingJob, TrainingRequest } from '../sagemaker/training-job';
import { Attempt } from './attempt';
import type { Cluster } from './cluster';
import { belowBase } from './files/input-source';
import { containerCommand } from './instances/container-command';
import { inputDataConfig, resourceConfig } from './instances/instance-files';
import type { RunServices } from './job-services';

/** Folder that CheckpointConfig synchronizes with S3, below the base folder of an instance. */
export function checkpointFolder({ CheckpointConfig }: TrainingRequest): string {
  return belowBase(CheckpointConfig?.LocalPath ?? '/opt/ml/checkpoints');
}

/** An attempt of a training job on one cluster, according to the container contract of SageMaker training. */
export function trainingAttempt(
  job: TrainingJob,
  cluster: Cluster,
  services: RunServices,
  onLine: (host: string, line: string) => void,
): Attempt {
  const { request } = job;
  const channels = request.InputDataConfig ?? [];
  const algorithm = request.AlgorithmSpecification;
  const mode = algorithm?.TrainingInputMode ?? 'File';
  const json = (value: object) => `${JSON.stringify(value)}\n`;
  return new Attempt(services.host, {
    jobName: job.name,
    region: job.region,
    roleArn: request.RoleArn ?? '',
    cluster,
    command: containerCommand(
      {
        image: algorithm?.TrainingImage ?? algorithm?.AlgorithmName ?? '',
        entrypoint: algorithm?.ContainerEntrypoint,
        arguments: algorithm?.ContainerArguments,
        defaultArguments: ['train'],
      },
      services.imageCommand,
    ),
    environment: { ...request.Environment, TRAINING_JOB_NAME: job.name, TRAINING_JOB_ARN: job.arn },
    files: (host) => ({
      'hyperparameters.json': json(request.HyperParameters ?? {}),
      'inputdataconfig.json': json(inputDataConfig(channels, mode)),
      'resourceconfig.json': json(resourceConfig(cluster, host)),
    }),
    configFolder: 'input/config',
    folders: ['input/data', 'model', 'output/data', 'code', checkpointFolder(request)],
    networkIsolation: request.EnableNetworkIsolation === true,
    logGroup: JOB_LOG_GROUPS.training,
    onLine,
  });
}
