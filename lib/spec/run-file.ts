import { z } from 'zod';
import { sha256 } from './sha256';

/**
 * The run file as written: every option optional but name, code and compute. Limits are those of the API
 * (https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html, botocore 1.43.107, 2026-11-20).
 */
const text = z.string();
const words = (limit: number) => z.string().min(1).max(limit);
const count = z.int().min(1);
const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()], {
  error: 'must be text, a number, true, false or null',
});
const s3Uri = z
  .string()
  .max(1024)
  .regex(
    /^s3:\/\/(\{[a-zA-Z]+\}|[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(\/|$)/,
    'must be an S3 URI such as s3://bucket/prefix/ or s3://{dataBucket}/prefix/',
  );
const channelName = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1-64 letters, digits, dots, underscores or hyphens');
const arn = (service: string) =>
  z.string().regex(new RegExp(`^arn:aws[a-z-]*:${service}:`), `must be an ARN that begins with arn:aws:${service}:`);
const fileSystemId = z
  .string()
  .regex(/^(fs-[0-9a-f]{8,17}|\{fsx\})$/, 'must be a file system id such as fs-0123456789abcdef0');
const groupName = z.string().regex(/^.{1,64}$/, 'must be 1-64 characters without line breaks');

const factor = z.number().min(1);
const ropeScaling = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('linear'), factor }),
  z.strictObject({
    type: z.literal('llama3'),
    factor,
    lowFreqFactor: z.number().positive(),
    highFreqFactor: z.number().positive(),
    originalMaxPositionEmbeddings: count,
  }),
  z.strictObject({
    type: z.literal('yarn'),
    factor,
    originalMaxPositionEmbeddings: count,
    betaFast: z.number().positive().optional(),
    betaSlow: z.number().positive().optional(),
    attentionFactor: z.number().positive().optional(),
    truncate: z.boolean().optional(),
  }),
]);

const architecture = z.strictObject({
  layers: count,
  hiddenSize: count,
  attentionHeads: count,
  kvHeads: count.optional(),
  headSize: count.optional(),
  ffnHiddenSize: count,
  vocabularySize: count,
  gatedMlp: z.boolean().optional(),
  tiedEmbeddings: z.boolean().optional(),
  experts: count.optional(),
  expertsPerToken: count.optional(),
  ropeTheta: z.number().positive().optional(),
  ropeScaling: ropeScaling.optional(),
  normEpsilon: z.number().positive().optional(),
});

const model = z.strictObject({
  preset: text.optional(),
  weights: s3Uri.optional(),
  architecture: architecture.optional(),
});

const training = z.strictObject({
  sequenceLength: count.optional(),
  microBatchSize: count.optional(),
  globalBatchSize: count.optional(),
  totalTokens: z.number().positive().optional(),
  steps: count.optional(),
  precision: z.enum(['bf16', 'fp16', 'fp32', 'fp8']).optional(),
  activationCheckpointing: z.enum(['none', 'selective', 'full']).optional(),
  activationOffload: z.boolean().optional(),
  seed: z.int().min(0).optional(),
  lora: z
    .strictObject({
      rank: count,
      alpha: z.number().positive().optional(),
      targets: z.array(words(128)).min(1).optional(),
    })
    .optional(),
});

const progress = z.strictObject({
  stepRegex: z.string().max(500).optional(),
  lossRegex: z.string().max(500).optional(),
  startupMinutes: z.number().positive().optional(),
  silenceMinutes: z.number().positive().optional(),
});

const code = z.strictObject({
  source: words(1024),
  entryPoint: words(256).optional(),
  arguments: z
    .record(
      z.string(),
      z.union([scalar, z.array(scalar)], { error: 'must be text, a number, true, false, null or a list of them' }),
    )
    .optional(),
  requirements: words(256).optional(),
  sha256: sha256.optional(),
});

const image = z.strictObject({
  kind: z.enum(['environment', 'dlc', 'smp', 'huggingface', 'uri']).optional(),
  version: text.optional(),
  uri: z.string().min(1).max(255).optional(),
});

const instanceGroup = z.strictObject({ name: groupName, instanceType: text, instanceCount: count });

/** `{min, max}`: each attempt has as many instances as there is room for. */
const instanceCount = z.union([count, z.strictObject({ min: count, max: count })], {
  error: 'must be a whole number from 1 on, or { min, max }',
});

const compute = z.strictObject({
  instanceType: text.optional(),
  instanceCount: instanceCount.optional(),
  spareInstances: z.int().min(0).max(100).optional(),
  instanceGroups: z.array(instanceGroup).min(1).max(5).optional(),
  alternatives: z
    .array(
      z.strictObject({
        instanceType: text,
        instanceCount: count.optional(),
        trainingPlanArn: arn('sagemaker').optional(),
      }),
    )
    .optional(),
  capacity: z.enum(['on-demand', 'spot', 'training-plan']).optional(),
  trainingPlanArn: z
    .string()
    .regex(/^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:\d{12}:training-plan\/.+/, 'must be the ARN of a training plan')
    .optional(),
  volumeSizeGiB: count.optional(),
  keepAliveSeconds: z.int().min(0).max(21600).optional(),
  healthCheck: z.enum(['off', 'quick', 'full']).optional(),
});

const distribution = z.strictObject({
  library: text.optional(),
  launcher: z.enum(['torchrun', 'mpi', 'script']).optional(),
  collectives: z.enum(['auto', 'nccl', 'smddp', 'gloo']).optional(),
  contract: z.enum(['entrypoint', 'toolkit']).optional(),
  processesPerHost: count.optional(),
  parameters: z.record(z.string(), z.unknown()).optional(),
  mpiOptions: text.optional(),
  instanceGroups: z.array(text).min(1).optional(),
});

const channel = z.strictObject({
  channel: channelName,
  s3: s3Uri.optional(),
  inputMode: z.enum(['File', 'FastFile', 'Pipe']).optional(),
  s3DataType: z.enum(['S3Prefix', 'ManifestFile', 'AugmentedManifestFile']).optional(),
  s3DataDistribution: z.enum(['FullyReplicated', 'ShardedByS3Key']).optional(),
  attributeNames: z.array(words(256)).max(16).optional(),
  instanceGroups: z.array(text).min(1).max(5).optional(),
  shuffleSeed: z.int().min(0).optional(),
  contentType: z.string().max(256).optional(),
  fsxLustre: z
    .strictObject({ fileSystemId, directoryPath: z.string().max(4096), access: z.enum(['ro', 'rw']).optional() })
    .optional(),
  efs: z
    .strictObject({ fileSystemId, directoryPath: z.string().max(4096), access: z.enum(['ro', 'rw']).optional() })
    .optional(),
});

const checkpoints = z.strictObject({
  mode: z.enum(['direct', 'managed', 'fsx', 'none']).optional(),
  s3: s3Uri.optional(),
  localPath: z.string().min(1).max(4096).optional(),
  channel: channelName.optional(),
  intervalMinutes: z
    .union([z.literal('auto'), z.number().positive()], { error: 'must be auto or a number of minutes above 0' })
    .optional(),
  keep: count.optional(),
  committedMarker: z.string().max(256).optional(),
  startFrom: words(1024).optional(),
});

const limits = z.strictObject({
  maxRuntimeSeconds: z.int().min(1).max(2_419_200).optional(),
  maxWaitSeconds: z.int().min(1).optional(),
  maxPendingSeconds: z.int().min(1800).max(2_419_200).optional(),
  maxCostUsd: z.number().positive().optional(),
  maxAttempts: count.optional(),
  retryInternalErrors: z.int().min(1).max(30).optional(),
});

const network = z.strictObject({
  isolation: z.boolean().optional(),
  interContainerEncryption: z.boolean().optional(),
  efa: z.enum(['required', 'preferred', 'off']).optional(),
  efaVariables: z.enum(['auto', 'guide-2023']).optional(),
});

const observability = z.strictObject({
  metrics: z
    .array(z.strictObject({ name: words(255), regex: words(500) }))
    .max(40)
    .optional(),
  profiler: z
    .union([z.literal('off'), z.literal('pytorch'), z.literal('sagemaker'), z.literal(false)], {
      error: 'must be off, pytorch or sagemaker',
    })
    .transform((v) => (v === false ? 'off' : v))
    .optional(),
  tensorBoard: z.boolean().optional(),
  remoteDebug: z.boolean().optional(),
  mlflow: z
    .strictObject({
      arn: z
        .string()
        .regex(
          /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:\d{12}:mlflow-[a-zA-Z-]*\/.+/,
          'must be the ARN of an MLflow tracking server or app',
        ),
      experiment: words(256).optional(),
    })
    .optional(),
});

export const runFileSchema = z.strictObject({
  schema: z.literal(1).optional(),
  name: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/, 'must be 1-32 lower-case letters, digits or inner hyphens'),
  kind: z.enum(['training', 'processing']).optional(),
  environment: z
    .string()
    .regex(
      /^[a-z][a-z0-9]{0,11}(\/[a-z][a-z0-9]{0,11})?$/,
      'must be an environment name ([a-z][a-z0-9]{0,11}), or name/team',
    )
    .optional(),
  after: z.array(words(128)).optional(),
  priority: z.int().optional(),
  preemptible: z.boolean().optional(),
  tags: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]).transform(String)).optional(),
  model: model.optional(),
  training: training.optional(),
  progress: progress.optional(),
  code,
  image: image.optional(),
  compute,
  distribution: distribution.optional(),
  data: z.array(channel).optional(),
  checkpoints: checkpoints.optional(),
  output: z.strictObject({ s3: s3Uri }).optional(),
  limits: limits.optional(),
  network: network.optional(),
  observability: observability.optional(),
  hyperparameters: z.record(z.string(), z.unknown()).optional(),
  environmentVariables: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean()]).transform(String))
    .optional(),
  acknowledge: z.array(z.strictObject({ rule: words(128), reason: text })).optional(),
});

/** A run file after the schema has read it: options as written, defaults not yet filled in. */
export type RunFile = z.output<typeof runFileSchema>;
export type Architecture = z.output<typeof architecture>;
