import { type Rule, trainingRule, when } from '../rule';

/** Arguments of the trainer that report to a service, and the variable without which they cannot. */
const TRACKED = { mlflow: 'MLFLOW_TRACKING_URI', wandb: 'WANDB_PROJECT' } as const;

const RULES: readonly Rule[] = [
  {
    id: 'training/builtin-library',
    level: 'error',
    what: 'The built-in trainer supports fsdp, smp-v2 and deepspeed.',
    why: 'It has no other backends.',
    source: 'containers/trainer',
    check: (run) =>
      when(run.code.builtin === 'builtin' && !['fsdp', 'smp-v2', 'deepspeed'].includes(run.distribution.library), {
        path: 'distribution.library',
        must: 'must be fsdp, smp-v2 or deepspeed for the built-in trainer',
        got: run.distribution.library,
        fix: 'use fsdp, or custom code',
      }),
  },
  {
    id: 'training/builtin-trackers',
    level: 'error',
    what: 'The arguments mlflow and wandb require the variable that names their server or project.',
    why: 'Without it, every instance would start and then exit with code 77.',
    source: 'containers/trainer',
    check: ({ code, observability, environmentVariables, secrets, image }) =>
      Object.entries(TRACKED).flatMap(([name, variable]) =>
        when(
          code.builtin === 'builtin' &&
            code.arguments[name] === true &&
            observability[name as keyof typeof TRACKED] === undefined &&
            [environmentVariables, secrets].every((given) => given?.[variable] === undefined),
          {
            path: `code.arguments.${name}`,
            // An image of one's own may set the variable.
            ...(image.kind === 'uri' && { level: 'warning' as const }),
            must: `must be used with observability.${name}, or with ${variable} in environmentVariables`,
            got: true,
            fix: `set observability.${name} and remove it`,
          },
        ),
      ),
  },
  {
    id: 'training/builtin-smp',
    level: 'error',
    what: 'With the built-in trainer, SMP v2 requires a gated feed-forward block and exports no weights.',
    why: 'Its models are those of transformers; every instance would start and then exit with code 77.',
    source: 'containers/trainer',
    check: ({ code, distribution, model }) => {
      if (code.builtin !== 'builtin' || distribution.library !== 'smp-v2') return [];
      return [
        ...when(model?.architecture.gatedMlp === false, {
          path: 'model.architecture.gatedMlp',
          must: 'must be true with smp-v2 in the built-in trainer',
          got: false,
          fix: 'use fsdp',
        }),
        ...when(code.arguments['export-weights'] === true, {
          path: 'code.arguments.export-weights',
          must: 'must be left out with smp-v2 in the built-in trainer',
          got: true,
          fix: 'use fsdp',
        }),
      ];
    },
  },
  {
    id: 'training/builtin-deepspeed',
    level: 'error',
    what: 'With the built-in trainer, DeepSpeed has no optimizer or scheduler of its own and writes checkpoints to a folder.',
    why: 'The trainer has its own optimizer and schedule, and DeepSpeed does not write to S3; every instance would start and then exit with code 77.',
    source: 'containers/trainer',
    check: ({ code, distribution, checkpoints }) => {
      if (code.builtin !== 'builtin' || distribution.library !== 'deepspeed') return [];
      return [
        ...['optimizer', 'scheduler'].flatMap((own) =>
          when(own in distribution.parameters, {
            path: `distribution.parameters.${own}`,
            must: 'must be left out with the built-in trainer, which has its own',
            got: 'given',
            fix: 'remove it, and use code.arguments',
          }),
        ),
        ...when(checkpoints.mode === 'direct', {
          path: 'checkpoints.mode',
          must: 'must be fsx or managed with deepspeed, which writes to a folder, in the built-in trainer',
          got: 'direct',
          fix: 'use managed',
        }),
      ];
    },
  },
  {
    id: 'training/builtin-data',
    level: 'error',
    what: 'The built-in trainer reads tokens from the channel train, from the channel in the argument data-channel, or from the channels of training.mixture, and evaluates on the channel in the argument eval-channel.',
    why: 'Otherwise it has no training data, or ends at its first evaluation.',
    source: 'containers/README.md',
    check: ({ code, training, data }) => {
      if (code.builtin !== 'builtin') return [];
      // The variable with the folder of a channel is in upper case.
      const missing = (channel: string) => !data.some((one) => one.channel.toUpperCase() === channel.toUpperCase());
      const channels = data.map((one) => one.channel);
      const [channel, held] = [String(code.arguments['data-channel'] ?? 'train'), code.arguments['eval-channel']];
      return [
        ...when(!training.mixture && missing(channel), {
          path: 'data',
          must: `must have a channel ${channel} for the built-in trainer`,
          got: channels,
          fix: `add - { channel: ${channel}, s3: "s3://{dataBucket}/tokens/" }`,
        }),
        ...when(typeof held === 'string' && held !== '' && missing(held), {
          path: 'code.arguments.eval-channel',
          must: `must be a channel of data (${channels.join(', ')})`,
          got: held,
          fix: `use one of them, or add - { channel: ${held}, s3: "s3://{dataBucket}/held-out/" }`,
        }),
      ];
    },
  },
];

/** Rules for the capabilities of the built-in trainer. */
export const BUILTIN_TRAINER_RULES: readonly Rule[] = RULES.map(trainingRule);
