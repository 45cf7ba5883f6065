import type { TrainingJob } from '../sagemaker/training-job';
import { Attempt } from './attempt';
import type { Cluster } from './cluster';
import { inputDataConfig, resourceConfig } from './instance-files';
import { JobFailure } from './job-failure';
import type { RunServices } from './training-run';

const LOG_GROUP = '/aws/sagemaker/TrainingJobs';

/** An attempt at a training job on one cluster, by the container contract of SageMaker training. */
export function trainingAttempt(
  job: TrainingJob,
  cluster: Cluster,
  services: RunServices,
  onLine: (host: string, line: string) => void,
): Attempt {
  const { request } = job;
  const channels = request.InputDataConfig ?? [];
  const mode = request.AlgorithmSpecification?.TrainingInputMode ?? 'File';
  const json = (value: object) => `${JSON.stringify(value)}\n`;
  return new Attempt(services.host, {
    jobName: job.name,
    region: job.region,
    roleArn: request.RoleArn ?? '',
    cluster,
    command: commandOf(job, services),
    environment: { ...request.Environment, TRAINING_JOB_NAME: job.name, TRAINING_JOB_ARN: job.arn },
    files: (host) => ({
      'input/config/hyperparameters.json': json(request.HyperParameters ?? {}),
      'input/config/inputdataconfig.json': json(inputDataConfig(channels, mode)),
      'input/config/resourceconfig.json': json(resourceConfig(cluster, host)),
    }),
    folders: ['input/data', 'model', 'output/data', 'code', 'checkpoints'],
    networkIsolation: request.EnableNetworkIsolation === true,
    logGroup: LOG_GROUP,
    onLine,
  });
}

/** There is no image here: what the request itself says is run, or what the sandbox was told the image runs. */
function commandOf({ request }: TrainingJob, services: RunServices): [string, ...string[]] {
  const algorithm = request.AlgorithmSpecification;
  const image = algorithm?.TrainingImage ?? algorithm?.AlgorithmName ?? '';
  const args = algorithm?.ContainerArguments ?? [];
  const [entry, ...rest] = algorithm?.ContainerEntrypoint ?? [];
  if (entry !== undefined) return [entry, ...rest, ...args];
  const [known, ...more] = services.imageCommand(image) ?? [];
  if (known !== undefined) return [known, ...more, ...(args.length > 0 ? args : ['train'])];
  throw new JobFailure(
    'ClientError',
    `the sandbox has no Docker and cannot run the entrypoint of image ${image}; give the request a ContainerEntrypoint, or ` +
      'name a command for the image in the sandbox option imageCommands',
  );
}
