import { z } from 'zod';
import { field, flag, formed, option, section, written } from './formats/field';
import { code, image } from './run/code';
import { compute, distribution } from './run/compute';
import { channel, checkpoints } from './run/data';
import { s3Uri, text, words } from './run/formats';
import { limits, network, observability } from './run/limits';
import { model } from './run/model';
import { progress, tokenizer, training } from './run/training';

/**
 * The run file as written: all options are optional except name, code and compute. Limits are those of the API
 * (https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html, botocore 1.43.107, 2026-11-20). `.meta` of each
 * field is shown in editors and in docs/reference/run-file.md.
 */
export const runFileSchema = z.strictObject({
  schema: option(z.literal(1), 'Version of the file format.', { default: 1 }),
  name: field(
    formed(/^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/, 'must be 1-32 lower-case letters, digits or inner hyphens'),
    'Name of the run; the run ID is <name>-<yymmddhhmmss>.',
    { examples: ['llama2-13b-pretrain'] },
  ),
  kind: option(z.enum(['training', 'processing']), 'Training job, or processing job for data preparation.', {
    default: 'training',
  }),
  environment: option(
    formed(
      /^[a-z][a-z0-9]{0,11}(\/[a-z][a-z0-9]{0,11})?$/,
      'must be an environment name ([a-z][a-z0-9]{0,11}), or name/team',
    ),
    'Environment to launch into, or environment/team; `--environment` overrides it. Default: none.',
    { examples: ['research', 'research/nlp'] },
  ),
  after: option(
    z.array(words(128)).max(50),
    'Runs that must complete before this run starts: run IDs, or `latest:<run name>`; with its own name, the newest run before it.',
    { default: [], examples: [['latest:c4-tokenize']] },
  ),
  priority: option(z.int(), 'Priority in the queue of the team; runs with a higher priority start first.', {
    default: 0,
    examples: [10],
  }),
  preemptible: flag('Whether a run of higher priority may preempt this run after it has saved a checkpoint.'),
  tags: option(
    z.record(z.string(), field(written, 'Value of one tag.')),
    'Tags of the jobs. The key prefixes `slipway:` and `aws:` are reserved.',
    { default: {}, examples: [{ project: 'llama', costCenter: '42' }] },
  ),
  model: option(model, 'The model, for the built-in trainer and the planner; optional for user code. Default: none.', {
    examples: [{ preset: 'llama3-8b' }],
  }),
  training: option(
    training,
    'Batch size, length and precision of the training, for the built-in trainer and the planner.',
    { examples: [{ sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 512, totalTokens: 2.0e9 }] },
  ),
  tokenizer: option(
    tokenizer,
    'Processing runs with the tokenise step only: conversion of conversations, completions and preferences to tokens and loss masks.',
    { examples: [{ trainOn: 'assistant' }] },
  ),
  progress: option(progress, 'How Slipway detects the progress of user code; not needed for the built-in trainer.', {
    examples: [{ stepRegex: 'step=(\\d+)', startupMinutes: 60 }],
  }),
  code: field(code, 'The training code.', { examples: [{ source: 'builtin' }] }),
  image: option(image, 'Container image. Default: the image of the environment.', {
    examples: [{ kind: 'dlc', version: '2.7.1' }],
  }),
  compute: field(compute, 'Instances and their purchase option.', {
    examples: [{ instanceType: 'ml.p5.48xlarge', instanceCount: 2 }],
  }),
  distribution: option(
    distribution,
    'How the training is distributed over the instances. Default: fsdp for the built-in trainer.',
    { examples: [{ library: 'fsdp' }] },
  ),
  data: option(z.array(channel), 'Input channels.', {
    default: [],
    examples: [[{ channel: 'train', s3: 's3://{dataBucket}/c4-tokens/' }]],
  }),
  checkpoints: option(
    checkpoints,
    'Location and interval of checkpoints. Default: direct to S3 for the built-in trainer, except with deepspeed.',
    { examples: [{ mode: 'direct', keep: 3 }] },
  ),
  output: option(
    z.strictObject({
      s3: option(
        s3Uri,
        'S3 prefix of the results. Default: a prefix of the run in the artifact bucket for training runs; required for processing runs.',
        { examples: ['s3://{dataBucket}/c4-tokens/'] },
      ),
      compression: option(
        z.enum(['none', 'gzip']),
        'Training only: whether /opt/ml/model and /opt/ml/output/data are stored as files (none) or as one .tar.gz each (gzip).',
        { default: 'none' },
      ),
    }),
    'Location and format of the results. Default: a prefix of the run for training runs; processing runs require `s3`.',
    { examples: [{ s3: 's3://{dataBucket}/c4-tokens/' }] },
  ),
  limits: option(limits, 'Limits of time, cost and failures.', {
    examples: [{ maxRuntimeSeconds: 86400, maxCostUsd: 5000 }],
  }),
  network: option(network, 'Network isolation, encryption and EFA.', { examples: [{ efa: 'required' }] }),
  observability: option(observability, 'Metrics, profiler, TensorBoard, remote debug, Weights & Biases and MLflow.', {
    examples: [{ tensorBoard: true }],
  }),
  hyperparameters: option(
    z.record(z.string(), field(z.unknown(), 'Value of one hyperparameter.')),
    'Hyperparameters of the job, which the console shows; with `contract: toolkit` they are passed to the script. A number is passed by its value (`2.10` as 2.1), text in quotes as written.',
    { default: {}, examples: [{ epochs: 1 }] },
  ),
  environmentVariables: option(
    z.record(z.string(), field(written, 'Value of one variable.')),
    'Environment variables of the containers; they override those of the image. Values are passed as written, also numbers: `2.10` stays 2.10, and `$NAME` is not expanded. Variables of credentials, of the cluster and of the driver are refused (`code/reserved-variables`).',
    { default: {}, examples: [{ NCCL_DEBUG: 'INFO' }] },
  ),
  secrets: option(
    z.record(
      formed(/^[A-Za-z_]\w*$/, 'must be the name of a variable: letters, digits and _'),
      field(
        formed(
          /^(arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+|arn:aws[a-z-]*:ssm:[a-z0-9-]+:\d{12}:parameter\/[\w./-]+|\/[\w./-]+|[\w+=.@][\w/+=.@-]*)$/,
          'must be the ARN or the name of a secret, or of a parameter, whose name begins with /',
        ).max(2048),
        'ARN or name of a secret in Secrets Manager, or of a parameter in Systems Manager.',
      ),
    ),
    'Environment variables whose values the container reads from Secrets Manager or Parameter Store, with the role of the job. Values are masked in logs and never appear in requests, job files or reports.',
    { default: {}, examples: [{ HF_TOKEN: 'slipway/nlp/hugging-face' }] },
  ),
  acknowledge: option(
    z.array(
      section('One rule that is acknowledged.', {
        rule: field(words(128), 'ID of the rule.', { examples: ['smddp/frozen'] }),
        reason: field(text, 'Reason, which is printed with the warning.', { examples: ['p4d fleet until 2027'] }),
      }),
    ),
    'Rules whose errors become warnings, if the rule allows it.',
    { default: [], examples: [[{ rule: 'smddp/frozen', reason: 'p4d fleet until 2027' }]] },
  ),
});

export type { Architecture } from './run/architecture';

/** A run file after the schema: options as written, without defaults. */
export type RunFile = z.output<typeof runFileSchema>;
