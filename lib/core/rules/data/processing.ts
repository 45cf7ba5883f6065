import { type Rule, rule, ruleWhere, when } from '../../config/rule';

const TRAINING_ONLY = ['distribution', 'checkpoints', 'training', 'model', 'progress'] as const;

/**
 * CreateProcessingJob accepts fewer types than CreateTrainingJob, and shorter environment variables. Source: botocore 1.43.107, 2026-11-20.
 */
const NOT_FOR_PROCESSING = /^ml\.(c5n|p3dn|p4de?|p5en|p6-b[23]00|p6e-gb200|trn\w+)\.|^ml\.p5e?\.48xlarge$/;
const VARIABLE_LIMIT = 256;

/** At most 9 days: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ProcessingStoppingCondition.html */
const LONGEST_SECONDS = 777_600;
const MAX_INSTANCES = 100;

const MAX_INPUTS = 10;

export const PROCESSING_RULES: readonly Rule[] = [
  rule('processing/sections', 'error', (run) => [
    ...when(run.output?.s3 === undefined, 'output.s3', {
      must: 'must be set for a processing run',
      fix: 'add output: { s3: "s3://{dataBucket}/..." }',
    }),
    ...when(run.output?.compression !== undefined, 'output.compression', {
      must: 'must be absent from a processing run, whose outputs are copied as they are',
    }),
    ...TRAINING_ONLY.flatMap((section) =>
      when(run.written[section] !== undefined, section, {
        must: 'must be absent from a processing run',
        got: Object.keys(run.written[section] ?? {}),
        fix: 'remove it, or use kind: training',
      }),
    ),
  ]),
  rule('processing/cluster', 'error', ({ compute, limits }) => [
    ...when(compute.instanceGroups.length > 0, 'compute.instanceGroups', {
      must: 'must be absent from a processing run',
      got: compute.instanceGroups.map((g) => g.name),
      fix: 'use instanceType and instanceCount',
    }),
    ...when(compute.capacity !== 'on-demand', 'compute.capacity', { must: 'must be on-demand for a processing run' }),
    ...when(compute.keepAliveSeconds > 0, 'compute.keepAliveSeconds', { must: 'must be 0 for a processing run' }),
    ...compute.alternatives.flatMap(({ trainingPlanArn }, i) =>
      when(trainingPlanArn !== undefined, `compute.alternatives[${i}].trainingPlanArn`, {
        must: 'must be absent from a processing run',
      }),
    ),
    ...when(compute.instanceCount > MAX_INSTANCES, 'compute.instanceCount', {
      must: `must be at most ${MAX_INSTANCES} for a processing run`,
      fix: `use ${MAX_INSTANCES} or less`,
    }),
    ...when(limits.maxRuntimeSeconds > LONGEST_SECONDS, 'limits.maxRuntimeSeconds', {
      must: `must be at most ${LONGEST_SECONDS} (9 days) for a processing run`,
      fix: `use ${LONGEST_SECONDS} or less`,
    }),
  ]),
  rule('processing/inputs', 'error', (run) => {
    const limit = MAX_INPUTS - (run.code.builtin ? 2 : 3);
    return [
      ...when(run.data.length > limit, 'data', {
        must: `must be at most ${limit} inputs for a processing run (${MAX_INPUTS} less the launcher's own)`,
        got: run.data.length,
        fix: 'combine related data under one prefix',
      }),
      ...run.data.flatMap((channel, i) => [
        ...when(channel.s3 === undefined && channel.source === undefined, `data[${i}]`, {
          must: 'must be in S3 for a processing run',
          got: channel.channel,
          fix: 'use s3',
        }),
        ...when(channel.s3DataType === 'AugmentedManifestFile', `data[${i}].s3DataType`, {
          must: 'must be S3Prefix or ManifestFile for a processing run',
          fix: 'use ManifestFile',
        }),
        ...when(channel.inputMode === 'FastFile', `data[${i}].inputMode`, {
          must: 'must be File or Pipe for a processing run',
          fix: 'use File',
        }),
      ]),
    ];
  }),
  rule('processing/limits', 'error', (run) => {
    const type = run.compute.instanceType;
    return [
      ...when(NOT_FOR_PROCESSING.test(type), 'compute.instanceType', {
        must: 'must be a type that processing jobs support',
        fix: 'use a CPU type, ml.g5 or ml.g6, or kind: training with ShardedByS3Key',
      }),
      ...Object.entries(run.environmentVariables).flatMap(([name, value]) => {
        const isTooLong = name.length > VARIABLE_LIMIT || (value.length > VARIABLE_LIMIT && value.length <= 512);
        return when(isTooLong, `environmentVariables.${name}`, {
          must: `must have a name and a value of at most ${VARIABLE_LIMIT} characters in a processing run`,
          got: `${value.length} characters`,
          fix: 'move it to a file of the code',
        });
      }),
    ];
  }),
  /** Options of the file for which CreateProcessingJob has no field, if they are not at their defaults. */
  rule('processing/without-effect', 'warning', (run) => {
    const { observability, limits, network } = run.written;
    const given: [string, unknown][] = [
      ['hyperparameters', Object.keys(run.hyperparameters).length > 0 ? Object.keys(run.hyperparameters) : undefined],
      ['observability.metrics', observability?.metrics?.length ? observability.metrics.map((m) => m.name) : undefined],
      ['observability.profiler', observability?.profiler === 'off' ? undefined : observability?.profiler],
      ['observability.tensorBoard', observability?.tensorBoard || undefined],
      ['observability.remoteDebug', observability?.remoteDebug || undefined],
      ['observability.mlflow', observability?.mlflow?.arn],
      ['observability.wandb', observability?.wandb?.project],
      ['limits.maxPendingSeconds', limits?.maxPendingSeconds],
      ['limits.retryInternalErrors', limits?.retryInternalErrors],
      ['network.efa', network?.efa],
      ['network.efaVariables', network?.efaVariables],
      ...run.data.flatMap((c, i): [string, unknown][] => [
        [`data[${i}].shuffleSeed`, c.shuffleSeed],
        [`data[${i}].contentType`, c.contentType],
      ]),
    ];
    return given
      .filter(([, value]) => value !== undefined)
      .map(([path, value]) => ({
        path,
        must: 'must be absent from a processing run, where it has no effect',
        got: value,
        fix: 'remove it, or use kind: training',
      }));
  }),
].map(ruleWhere(({ kind }) => kind === 'processing'));
