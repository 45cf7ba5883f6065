import { z } from 'zod';
import { field, flag, formed, option, section } from '../formats/field';
import { count, words } from './formats';

export const limits = z.strictObject({
  maxRuntimeSeconds: option(
    z.int().min(1).max(2_419_200),
    'Maximum run time of one attempt, in seconds. At this limit, a run continues in the next attempt (planned hand-over), which does not count as a failure.',
    { default: 432_000, examples: [86_400] },
  ),
  maxWaitSeconds: option(
    z.int().min(1),
    'Spot only: maximum time of one attempt including the wait for capacity, in seconds; at least `maxRuntimeSeconds`. Default: `maxRuntimeSeconds + 86400` for spot, otherwise none.',
    { examples: [518_400] },
  ),
  maxPendingSeconds: option(
    z.int().min(1800).max(2_419_200),
    'Maximum time that a job on accelerated instances waits for capacity, in seconds. Default: none.',
    { examples: [86_400] },
  ),
  maxCostUsd: option(
    z.number().positive(),
    'Maximum cost of the whole run, in USD: a launch with a higher planned cost is rejected, and a run is stopped before it crosses it, after a new checkpoint if one comes in time. Without a known price, a warning says that it cannot be applied. Default: none.',
    { examples: [60_000] },
  ),
  maxAttempts: option(count, 'Maximum number of failed attempts of the whole run that committed nothing new.', {
    default: 20,
    examples: [20],
  }),
  retryInternalErrors: option(
    z.int().min(1).max(30),
    'Number of times that SageMaker restarts a job after an internal error (RetryStrategy of the API).',
    { default: 5, examples: [5] },
  ),
});

/** Section `network` of a run file. */
export const network = z.strictObject({
  isolation: flag(
    'Whether containers have no network access except to each other (EnableNetworkIsolation of the API).',
  ),
  interContainerEncryption: flag('Whether SageMaker encrypts traffic between instances. EFA traffic is not encrypted.'),
  efa: option(
    z.enum(['required', 'preferred', 'off']),
    'Reaction to a fallback from EFA to sockets: required ends the job, preferred reports it, off does not expect EFA. Default: required on several instances of types with EFA, otherwise off.',
  ),
  efaVariables: option(
    z.enum(['auto', 'guide-2023']),
    'Environment variables of EFA: selected by instance type and version (auto), or the variables that AWS published for p4d in 2023 (guide-2023).',
    { default: 'auto' },
  ),
});

const metric = section('A metric that SageMaker reads from the log.', {
  name: field(words(255), 'Name of the metric.', { examples: ['train:loss'] }),
  regex: field(words(500), 'Regular expression with one group that matches the value in a log line.', {
    examples: ['loss=([0-9.eE+-]+)'],
  }),
});

export const observability = z.strictObject({
  metrics: option(z.array(metric).max(40), 'Metrics that SageMaker reads from the log and writes to CloudWatch.', {
    default: [],
    examples: [[{ name: 'train:loss', regex: 'loss=([0-9.eE+-]+)' }]],
  }),
  profiler: option(
    z
      .union([z.literal('off'), z.literal('pytorch'), z.literal('sagemaker'), z.literal(false)], {
        error: 'must be off, pytorch or sagemaker',
      })
      .transform((v) => (v === false ? 'off' : v)),
    'Profiler: the PyTorch profiler (pytorch), the SageMaker profiler (sagemaker), or none (off).',
    { default: 'off', examples: ['pytorch'] },
  ),
  tensorBoard: flag('Whether TensorBoard event files are copied to the artifact bucket.'),
  remoteDebug: flag(
    'Whether users can open a shell in the containers with AWS Systems Manager (RemoteDebugConfig of the API); the guardrails of the environment must allow it.',
  ),
  wandb: option(
    z.strictObject({
      project: field(words(128), 'Project of Weights & Biases.', { examples: ['pretrain'] }),
      entity: option(words(128), 'Team or user of Weights & Biases. Default: the owner of the API key.', {
        examples: ['acme'],
      }),
      baseUrl: option(
        z.url({ protocol: /^https$/, error: 'must be an https URL such as https://wandb.example.com' }),
        'URL of a self-hosted server, which can be reachable without internet access. Default: the server of Weights & Biases.',
        { examples: ['https://wandb.example.com'] },
      ),
    }),
    'Weights & Biases project for the runs. The built-in trainer logs its progress there; user scripts have the variables WANDB_PROJECT, WANDB_ENTITY, WANDB_BASE_URL, WANDB_RUN_ID, WANDB_NAME and WANDB_RESUME, so that all attempts of a run are one run in Weights & Biases. The image must contain the package; `secrets.WANDB_API_KEY` names the secret with the API key. Default: none.',
    { examples: [{ project: 'pretrain', entity: 'acme' }] },
  ),
  mlflow: option(
    z.strictObject({
      arn: field(
        formed(
          /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:\d{12}:mlflow-[a-zA-Z-]*\/.+/,
          'must be the ARN of an MLflow tracking server or app',
        ),
        'ARN of an MLflow tracking server or app; the environment must declare it for the team.',
        { examples: ['arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/shared'] },
      ),
      experiment: option(words(256), 'Name of the MLflow experiment. Default: not sent.', { examples: ['pretrain'] }),
    }),
    'MLflow tracking of the runs. Default: none.',
    {
      examples: [
        { arn: 'arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/shared', experiment: 'pretrain' },
      ],
    },
  ),
});
